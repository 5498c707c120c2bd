//! Receives many datagrams with one system call, and reads how the system merged them and how
//! many it dropped. IO.
//!
//! The known wrappers of `recvmmsg` provide space for control messages only once, so only the
//! first batch would tell how datagrams were merged. No wrapper gives the number of dropped
//! datagrams. Hence this module has unsafe code, which also makes each call cheaper.

#![allow(unsafe_code)]

use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use mio::net::UdpSocket;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};

use super::udp::to_std;
use amber_core::limits::DATAGRAMS_PER_TURN;

/// The size of one buffer: any datagram, or any number of merged ones.
const BUFFER: usize = 1 << 16;

/// The result of one call, and the buffers for the next.
pub(super) struct Batch {
    /// Zeroed pages cost nothing until they are used.
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// They point into the buffers of `bytes` and `slots`, which are never replaced.
    headers: Vec<libc::mmsghdr>,
    count: usize,
}

/// The metadata that the system writes for each datagram.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    address: MaybeUninit<libc::sockaddr_storage>,
    control: Control,
    bytes: libc::iovec,
}

/// Space for one control message with a number, in the system's layout.
#[derive(Clone, Copy)]
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    number: libc::c_int,
}

// SAFETY: these only calculate.
#[cfg(target_os = "linux")]
const _: () = unsafe {
    const NUMBER: libc::c_uint = size_of::<libc::c_int>() as libc::c_uint;
    assert!(size_of::<Control>() == libc::CMSG_SPACE(NUMBER) as usize);
    assert!(offset_of!(Control, number) == libc::CMSG_LEN(0) as usize);
};

impl Batch {
    pub(super) fn new() -> Self {
        // SAFETY: these are plain C structures of numbers and pointers, for which
        // zeros are valid; all pointers are set below.
        let (slot, header) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut batch = Self {
            bytes: vec![0; DATAGRAMS_PER_TURN * BUFFER],
            slots: vec![slot; DATAGRAMS_PER_TURN],
            headers: vec![header; DATAGRAMS_PER_TURN],
            // Makes the first call set all lengths.
            count: DATAGRAMS_PER_TURN,
        };
        let (bytes, slots) = (batch.bytes.as_mut_ptr(), batch.slots.as_mut_ptr());
        for (number, header) in batch.headers.iter_mut().enumerate() {
            // SAFETY: there are as many slots and buffers as headers.
            let (bytes, slot) = unsafe { (bytes.add(number * BUFFER), slots.add(number)) };
            // SAFETY: the slot is valid, and nothing else uses it now.
            unsafe {
                (*slot).bytes.iov_base = bytes.cast();
                (*slot).bytes.iov_len = BUFFER;
                let header = &mut header.msg_hdr;
                header.msg_iov = &raw mut (*slot).bytes;
                header.msg_iovlen = 1;
                header.msg_name = (&raw mut (*slot).address).cast();
                header.msg_control = (&raw mut (*slot).control).cast();
            }
        }
        batch
    }

    /// Receives at most `room` datagrams without waiting. Returns their number.
    pub(super) fn receive(&mut self, socket: &UdpSocket, room: usize) -> io::Result<usize> {
        // The system has written lengths for the datagrams of the last call only.
        for header in &mut self.headers[..self.count] {
            let header = &mut header.msg_hdr;
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_controllen = size_of::<Control>() as _;
        }
        self.count = 0;
        let room = room.min(self.headers.len());
        // SAFETY: the first `room` headers point into `slots` and `bytes`, which are
        // as long as they say, live as long as `self`, and are not touched until the
        // call returns. Nothing else changes the pointers.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                room as _,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        self.count = Errno::result(count)? as usize;
        Ok(self.count)
    }

    /// The result of the last call: sender, bytes, and the length of each merged datagram; the
    /// last one may be shorter.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8], usize)> {
        let all = self.headers.iter().zip(&self.slots);
        let all = all.zip(self.bytes.chunks_exact(BUFFER)).take(self.count);
        all.filter_map(|((header, slot), bytes)| {
            let bytes = &bytes[..header.msg_len as usize];
            let header = &header.msg_hdr;
            // SAFETY: for each of `count` messages the system has written an address
            // of that length.
            let address = unsafe {
                SockaddrStorage::from_raw(slot.address.as_ptr().cast(), Some(header.msg_namelen))
            };
            // The system has set this to the length that it has written.
            let has_control = header.msg_controllen > 0;
            let merged = slot.control.segment().filter(|_| has_control);
            Some((to_std(&address?)?, bytes, merged.unwrap_or(BUFFER)))
        })
    }
}

/// The number of datagrams that the system has dropped at a socket, modulo 2^32, because its
/// buffer was full, its filter rejects them, or they were damaged. Linux reports it since 4.12 (`SO_MEMINFO`).
#[cfg(target_os = "linux")]
pub(super) fn dropped(socket: &impl AsFd) -> Option<u32> {
    let mut numbers = [0_u32; libc::SK_MEMINFO_DROPS as usize + 1];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the system writes at most `length` bytes, which is the size of `numbers`;
    // any bytes are valid there.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let whole = length as usize == size_of_val(&numbers);
    Errno::result(outcome).ok().filter(|_| whole)?;
    numbers.last().copied()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn dropped(_: &impl AsFd) -> Option<u32> {
    None
}

impl Control {
    /// The length of each of the merged datagrams.
    #[cfg(target_os = "linux")]
    fn segment(&self) -> Option<usize> {
        let Self { header, number } = self;
        let is_it = (header.cmsg_level, header.cmsg_type) == (libc::IPPROTO_UDP, libc::UDP_GRO);
        usize::try_from(*number)
            .ok()
            .filter(|segment| is_it && *segment > 0)
    }

    #[cfg(not(target_os = "linux"))]
    fn segment(&self) -> Option<usize> {
        let _ = self.number;
        None
    }
}
