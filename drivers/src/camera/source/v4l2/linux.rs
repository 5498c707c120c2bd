//! The calls of V4L2. IO.
//!
//! Crates for V4L2 need libclang, or are not maintained, so this module has the few structures and calls
//! that are used, and all unsafe code. The layouts are those of `linux/videodev2.h`; their sizes are in
//! the numbers of the calls, which are compared with those of the system below.

// The system reads and writes fields that are not used here.
#![allow(unsafe_code, dead_code)]

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::time::Duration;

use amber_proto::camera::{Choice, Control};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::time::{ClockId, clock_gettime};

use super::video::{Capability, FourCc, Shot, Video};

/// The number of buffers: one that is read, one that is written, and some for pauses of this thread.
const BUFFERS: u32 = 4;
/// The most entries of a list; a faulty driver may not end it.
const MAX_LISTED: u32 = 256;
/// The most bytes of a picture.
const MAX_BUFFER: usize = 64 << 20;

/// Values of fields.
const CAPTURE: u32 = 1;
const MMAP: u32 = 1;
const CAP_CAPTURE: u32 = 1;
const CAP_MULTI_PLANAR: u32 = 0x1000;
const CAP_METADATA: u32 = 0x0080_0000;
const CAP_STREAMING: u32 = 0x0400_0000;
const CAP_OF_DEVICE: u32 = 0x8000_0000;
const PER_FRAME: u32 = 0x1000;
const DISCRETE: u32 = 1;
const FLAG_ERROR: u32 = 0x40;
const FLAG_CLOCK_MASK: u32 = 0xE000;
const FLAG_MONOTONIC: u32 = 0x2000;
const NEXT_CONTROL: u32 = 0x8000_0000;
const CONTROL_DISABLED: u32 = 0x1;
const CONTROL_READ_ONLY: u32 = 0x4;
const CONTROL_INACTIVE: u32 = 0x10;
/// Types of controls: whole numbers, switches, and the two kinds of menus.
const INTEGER: u32 = 1;
const BOOLEAN: u32 = 2;
const MENU: u32 = 3;
const INTEGER_MENU: u32 = 9;

#[derive(Clone, Copy)]
#[repr(C)]
struct RawCapability {
    driver: [u8; 16],
    card: [u8; 32],
    bus_info: [u8; 32],
    version: u32,
    capabilities: u32,
    device_caps: u32,
    reserved: [u32; 3],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct FormatDescription {
    index: u32,
    kind: u32,
    flags: u32,
    description: [u8; 32],
    pixel_format: [u8; 4],
    mbus_code: u32,
    reserved: [u32; 3],
}

/// A union in the header: the member for pictures, and space for the others, which have pointers.
#[derive(Clone, Copy)]
#[repr(C)]
struct Format {
    kind: u32,
    #[cfg(target_pointer_width = "64")]
    padding: u32,
    width: u32,
    height: u32,
    pixel_format: [u8; 4],
    field: u32,
    bytes_per_line: u32,
    size_image: u32,
    rest: [u32; 44],
}

/// A union in the header, as above.
#[derive(Clone, Copy)]
#[repr(C)]
struct StreamParameters {
    kind: u32,
    capability: u32,
    mode: u32,
    numerator: u32,
    denominator: u32,
    rest: [u32; 46],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct FrameSize {
    index: u32,
    pixel_format: [u8; 4],
    kind: u32,
    /// Width and height, or their minimum, maximum and step each.
    values: [u32; 6],
    reserved: [u32; 2],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct FrameInterval {
    index: u32,
    pixel_format: [u8; 4],
    width: u32,
    height: u32,
    kind: u32,
    /// Numerator and denominator: of the interval, or of minimum, maximum and step each.
    values: [u32; 6],
    reserved: [u32; 2],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct RequestBuffers {
    count: u32,
    kind: u32,
    memory: u32,
    capabilities: u32,
    flags: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Buffer {
    index: u32,
    kind: u32,
    bytes_used: u32,
    flags: u32,
    field: u32,
    timestamp: libc::timeval,
    timecode: [u32; 4],
    sequence: u32,
    memory: u32,
    /// A union in the header: its first four bytes are the offset.
    offset: [u8; size_of::<libc::c_ulong>()],
    length: u32,
    reserved: u32,
    request: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct QueryControl {
    id: u32,
    kind: u32,
    name: [u8; 32],
    minimum: i32,
    maximum: i32,
    step: i32,
    default_value: i32,
    flags: u32,
    reserved: [u32; 2],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct QueryMenu {
    id: u32,
    index: u32,
    /// A text, or a number of eight bytes.
    name: [u8; 32],
    reserved: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct ControlValue {
    id: u32,
    value: i32,
}

/// The calls.
#[allow(unreachable_pub, missing_docs)]
mod calls {
    use super::*;

    nix::ioctl_read!(query_capability, b'V', 0, RawCapability);
    nix::ioctl_readwrite!(enumerate_formats, b'V', 2, FormatDescription);
    nix::ioctl_readwrite!(set_format, b'V', 5, Format);
    nix::ioctl_readwrite!(request_buffers, b'V', 8, RequestBuffers);
    nix::ioctl_readwrite!(query_buffer, b'V', 9, Buffer);
    nix::ioctl_readwrite!(queue_buffer, b'V', 15, Buffer);
    nix::ioctl_readwrite!(dequeue_buffer, b'V', 17, Buffer);
    nix::ioctl_write_ptr!(stream_on, b'V', 18, c_int);
    nix::ioctl_write_ptr!(stream_off, b'V', 19, c_int);
    nix::ioctl_readwrite!(set_parameters, b'V', 22, StreamParameters);
    nix::ioctl_readwrite!(read_control, b'V', 27, ControlValue);
    nix::ioctl_readwrite!(set_control, b'V', 28, ControlValue);
    nix::ioctl_readwrite!(query_control, b'V', 36, QueryControl);
    nix::ioctl_readwrite!(query_menu, b'V', 37, QueryMenu);
    nix::ioctl_readwrite!(enumerate_sizes, b'V', 74, FrameSize);
    nix::ioctl_readwrite!(enumerate_intervals, b'V', 75, FrameInterval);
}

/// The sizes of all structures, as the system has them: they are a part of the numbers of the calls.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<RawCapability>() == 104);
    assert!(size_of::<FormatDescription>() == 64);
    assert!(size_of::<Format>() == 208);
    assert!(size_of::<StreamParameters>() == 204);
    assert!(size_of::<FrameSize>() == 44);
    assert!(size_of::<FrameInterval>() == 52);
    assert!(size_of::<RequestBuffers>() == 20);
    assert!(size_of::<Buffer>() == 88);
    assert!(size_of::<QueryControl>() == 68);
    assert!(size_of::<QueryMenu>() == 44);
    assert!(std::mem::offset_of!(Buffer, timestamp) == 24);
    assert!(std::mem::offset_of!(Buffer, sequence) == 56);
    assert!(std::mem::offset_of!(Buffer, offset) == 64);
    assert!(std::mem::offset_of!(Buffer, length) == 72);
    assert!(std::mem::offset_of!(Format, width) == 8);
};

/// A structure of the header: numbers only.
trait Structure: Copy {}

macro_rules! structures {
    ($($name:ident)*) => {$(impl Structure for $name {})*};
}

structures! {
    RawCapability FormatDescription Format StreamParameters FrameSize FrameInterval RequestBuffers Buffer
    QueryControl QueryMenu ControlValue
}

/// A structure of zeros.
fn zeros<T: Structure>() -> T {
    // SAFETY: it has only numbers, for which zeros are valid.
    unsafe { std::mem::zeroed() }
}

/// Memory that the system shares with us, with one picture.
struct Mapping {
    start: NonNull<libc::c_void>,
    length: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no reference to it lives longer than `self`.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}

/// An open video device.
pub(super) struct LinuxVideo {
    file: File,
    /// Dropped before the file is closed.
    mappings: Vec<Mapping>,
    is_on: bool,
}

impl LinuxVideo {
    /// Opens a node.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true);
        options.custom_flags(OFlag::O_NONBLOCK.bits());
        Ok(Self {
            file: options.open(path)?,
            mappings: Vec::new(),
            is_on: false,
        })
    }

    /// Makes a call with a structure. It is repeated if a signal interrupts it.
    fn call<T: Structure>(
        &self,
        function: unsafe fn(c_int, *mut T) -> nix::Result<c_int>,
        structure: &mut T,
    ) -> io::Result<()> {
        loop {
            // SAFETY: the function is one of `calls`, whose structure is of this type and lives until it
            // returns. The system writes no pointers into it.
            match unsafe { function(self.file.as_raw_fd(), structure) } {
                Err(Errno::EINTR) => {}
                done => {
                    done?;
                    return Ok(());
                }
            }
        }
    }

    /// The entries of a list that the system numbers from 0.
    fn list<T: Structure>(
        &self,
        function: unsafe fn(c_int, *mut T) -> nix::Result<c_int>,
        entry: impl Fn(u32) -> T,
    ) -> io::Result<Vec<T>> {
        let mut all = Vec::new();
        for index in 0..MAX_LISTED {
            let mut one = entry(index);
            match self.call(function, &mut one) {
                Ok(()) => all.push(one),
                Err(error) if is(&error, Errno::EINVAL) => break,
                // A device without such a list.
                Err(error) if is(&error, Errno::ENOTTY) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    fn buffer(index: u32) -> Buffer {
        Buffer {
            index,
            kind: CAPTURE,
            memory: MMAP,
            ..zeros()
        }
    }

    fn switch(
        &self,
        function: unsafe fn(c_int, *const c_int) -> nix::Result<c_int>,
    ) -> io::Result<()> {
        let kind = CAPTURE as c_int;
        // SAFETY: the function is one of `calls`, and the number lives until it returns.
        unsafe { function(self.file.as_raw_fd(), &kind) }?;
        Ok(())
    }

    fn map(&self, buffer: &Buffer) -> io::Result<Mapping> {
        let length = buffer.length as usize;
        let size = NonZeroUsize::new(length).filter(|size| size.get() <= MAX_BUFFER);
        let size = size.ok_or(io::ErrorKind::InvalidData)?;
        let [a, b, c, d, ..] = buffer.offset;
        let offset = u32::from_ne_bytes([a, b, c, d]) as libc::off_t;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the system chooses a new place for it.
        let start = unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, &self.file, offset) }?;
        Ok(Mapping { start, length })
    }

    fn control_of(&self, query: &QueryControl) -> Option<Control> {
        let is_usable = query.flags & (CONTROL_DISABLED | CONTROL_READ_ONLY) == 0;
        if !is_usable || ![INTEGER, BOOLEAN, MENU, INTEGER_MENU].contains(&query.kind) {
            return None;
        }
        let mut value = ControlValue {
            id: query.id,
            value: 0,
        };
        self.call(calls::read_control, &mut value).ok()?;
        Some(Control {
            id: Some(query.id),
            name: Some(text(&query.name)),
            value: Some(value.value.into()),
            minimum: Some(query.minimum.into()),
            maximum: Some(query.maximum.into()),
            step: Some(query.step.into()),
            default_value: Some(query.default_value.into()),
            automatic: (query.flags & CONTROL_INACTIVE != 0).then_some(true),
            choices: self.choices(query),
        })
    }

    /// The entries of a menu. There are holes between them.
    fn choices(&self, query: &QueryControl) -> Vec<Choice> {
        if ![MENU, INTEGER_MENU].contains(&query.kind) {
            return Vec::new();
        }
        let (first, last) = (query.minimum.max(0), query.maximum.min(MAX_LISTED as i32));
        let choices = (first..=last).filter_map(|value| {
            let mut menu = QueryMenu {
                id: query.id,
                index: value.cast_unsigned(),
                ..zeros()
            };
            self.call(calls::query_menu, &mut menu).ok()?;
            let name = match query.kind {
                MENU => text(&menu.name),
                _ => i64::from_ne_bytes(*menu.name.first_chunk()?).to_string(),
            };
            Some(Choice {
                value: Some(value.into()),
                name: Some(name),
            })
        });
        choices.collect()
    }
}

impl Video for LinuxVideo {
    fn capability(&mut self) -> io::Result<Capability> {
        let mut raw: RawCapability = zeros();
        self.call(calls::query_capability, &mut raw)?;
        let of_node = raw.capabilities & CAP_OF_DEVICE != 0;
        let all = if of_node {
            raw.device_caps
        } else {
            raw.capabilities
        };
        Ok(Capability {
            name: text(&raw.card),
            takes_pictures: all & CAP_CAPTURE != 0,
            streams: all & CAP_STREAMING != 0,
            has_metadata: all & CAP_METADATA != 0,
            is_multi_planar: all & CAP_MULTI_PLANAR != 0,
        })
    }

    fn formats(&mut self) -> io::Result<Vec<FourCc>> {
        let entry = |index| FormatDescription {
            index,
            kind: CAPTURE,
            ..zeros()
        };
        let all = self.list(calls::enumerate_formats, entry)?;
        Ok(all.iter().map(|it| FourCc(it.pixel_format)).collect())
    }

    fn sizes(&mut self, format: FourCc) -> io::Result<Vec<(u32, u32)>> {
        let entry = |index| FrameSize {
            index,
            pixel_format: format.0,
            ..zeros()
        };
        let all = self.list(calls::enumerate_sizes, entry)?;
        let size = |it: &FrameSize| match it.kind {
            DISCRETE => (it.values[0], it.values[1]),
            // A range has only this entry: its largest size.
            _ => (it.values[1], it.values[4]),
        };
        Ok(all.iter().map(size).collect())
    }

    fn intervals(&mut self, format: FourCc, (width, height): (u32, u32)) -> io::Result<Vec<f64>> {
        let entry = |index| FrameInterval {
            index,
            pixel_format: format.0,
            width,
            height,
            ..zeros()
        };
        let all = self.list(calls::enumerate_intervals, entry)?;
        // That of the entry, or the shortest of a range.
        let seconds = all
            .iter()
            .map(|it| f64::from(it.values[0]) / f64::from(it.values[1]));
        Ok(seconds.filter(|it| it.is_finite()).collect())
    }

    fn set_format(
        &mut self,
        format: FourCc,
        (width, height): (u32, u32),
    ) -> io::Result<(FourCc, (u32, u32))> {
        let mut wanted = Format {
            kind: CAPTURE,
            width,
            height,
            pixel_format: format.0,
            ..zeros()
        };
        self.call(calls::set_format, &mut wanted)?;
        Ok((FourCc(wanted.pixel_format), (wanted.width, wanted.height)))
    }

    fn set_interval(&mut self, seconds: f64) -> io::Result<Option<f64>> {
        let mut wanted = StreamParameters {
            kind: CAPTURE,
            numerator: 1_000,
            denominator: (1_000.0 / seconds).round() as u32,
            ..zeros()
        };
        self.call(calls::set_parameters, &mut wanted)?;
        let got = f64::from(wanted.numerator) / f64::from(wanted.denominator);
        let says_it = wanted.capability & PER_FRAME != 0;
        Ok((says_it && got.is_finite() && got > 0.0).then_some(got))
    }

    fn controls(&mut self) -> io::Result<Vec<Control>> {
        let mut controls = Vec::new();
        let mut id = 0;
        for _ in 0..MAX_LISTED {
            let mut query = QueryControl {
                id: id | NEXT_CONTROL,
                ..zeros()
            };
            match self.call(calls::query_control, &mut query) {
                Ok(()) if query.id > id => id = query.id,
                Ok(()) => break,
                Err(error) if is(&error, Errno::EINVAL) => break,
                Err(error) => return Err(error),
            }
            controls.extend(self.control_of(&query));
        }
        Ok(controls)
    }

    fn set_control(&mut self, id: u32, value: i64) -> io::Result<()> {
        let value = i32::try_from(value).map_err(|_| io::Error::from(Errno::ERANGE))?;
        self.call(calls::set_control, &mut ControlValue { id, value })
    }

    fn start(&mut self) -> io::Result<()> {
        let mut request = RequestBuffers {
            count: BUFFERS,
            kind: CAPTURE,
            memory: MMAP,
            ..zeros()
        };
        self.call(calls::request_buffers, &mut request)?;
        for index in 0..request.count.min(MAX_LISTED) {
            let mut buffer = Self::buffer(index);
            self.call(calls::query_buffer, &mut buffer)?;
            self.mappings.push(self.map(&buffer)?);
            self.call(calls::queue_buffer, &mut Self::buffer(index))?;
        }
        self.switch(calls::stream_on)?;
        self.is_on = true;
        Ok(())
    }

    fn next(&mut self, patience: Duration) -> io::Result<Option<Shot>> {
        let ready = {
            let mut waited = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
            match poll(&mut waited, patience) {
                Ok(0) | Err(Errno::EINTR) => return Ok(None),
                Ok(_) => waited[0].revents().unwrap_or(PollFlags::empty()),
                Err(error) => return Err(error.into()),
            }
        };
        // It was unplugged, or its transfer has failed: then the call says which.
        let has_failed = ready.intersects(PollFlags::POLLERR | PollFlags::POLLHUP);
        let mut buffer = Self::buffer(0);
        match self.call(calls::dequeue_buffer, &mut buffer) {
            Ok(()) => {}
            Err(error) if is(&error, Errno::EAGAIN) && has_failed => {
                return Err(Errno::ENODEV.into());
            }
            Err(error) if is(&error, Errno::EAGAIN) => return Ok(None),
            Err(error) => return Err(error),
        }
        let mapping = self.mappings.get(buffer.index as usize);
        let mapping = mapping.ok_or(io::ErrorKind::InvalidData)?;
        let used = (buffer.bytes_used as usize).min(mapping.length);
        // SAFETY: the memory is mapped, and the system does not write there until the buffer is queued.
        let bytes = unsafe { std::slice::from_raw_parts(mapping.start.as_ptr().cast(), used) };
        let shot = Shot {
            bytes: bytes.to_vec(),
            is_bad: buffer.flags & FLAG_ERROR != 0,
            age: age(&buffer),
        };
        self.call(calls::queue_buffer, &mut Self::buffer(buffer.index))?;
        Ok(Some(shot))
    }

    fn stop(&mut self) {
        if std::mem::take(&mut self.is_on) {
            // An unplugged camera is off anyway.
            let _ = self.switch(calls::stream_off);
        }
        self.mappings.clear();
        let mut none = RequestBuffers {
            count: 0,
            kind: CAPTURE,
            memory: MMAP,
            ..zeros()
        };
        let _ = self.call(calls::request_buffers, &mut none);
    }
}

impl Drop for LinuxVideo {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How long ago a picture was taken, if the system tells it by the clock that we know.
fn age(buffer: &Buffer) -> Option<Duration> {
    if buffer.flags & FLAG_CLOCK_MASK != FLAG_MONOTONIC {
        return None;
    }
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?);
    let stamp = &buffer.timestamp;
    let (seconds, us) = (
        u64::try_from(stamp.tv_sec).ok()?,
        u64::try_from(stamp.tv_usec).ok()?,
    );
    let taken = Duration::from_secs(seconds) + Duration::from_micros(us);
    now.checked_sub(taken).filter(|_| !taken.is_zero())
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno as i32)
}

/// The text before the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
