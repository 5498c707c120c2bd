/* A USB camera for tests, without a kernel that has one: loaded before a program by LD_PRELOAD, it
 * answers the calls of V4L2 for one device file.
 *
 * SHIM_DEVICE is the path of the device. While there is a file at this path, the camera is plugged in. It
 * sends pixels (YUYV) of 320 x 240, 30 times per second: grey, and lighter with each picture. Its only
 * control is the brightness, from 0 to 255.
 *
 * The descriptor that a program gets is a timer, so it can wait for it as for a camera. The structures
 * are those of the kernel's own header.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 320, HEIGHT = 240, BYTES = WIDTH * HEIGHT * 2, BUFFERS = 4 };

static int camera = -1;
static int is_on, brightness = 128;
static unsigned sequence;
static void *pixels[BUFFERS];
static int queue[BUFFERS], queued;

static const char *device(void) {
    const char *path = getenv("SHIM_DEVICE");
    return path ? path : "";
}

static int is_plugged_in(void) { return access(device(), F_OK) == 0; }

static int refuse(int error) {
    errno = error;
    return -1;
}

static int set_timer(int is_running) {
    struct itimerspec period = {{0, 0}, {0, 0}};
    if (is_running) period.it_interval.tv_nsec = period.it_value.tv_nsec = 33333333;
    return timerfd_settime(camera, 0, &period, NULL);
}

static int dequeue(struct v4l2_buffer *buffer) {
    uint64_t ticks;
    struct timespec now;
    if (!is_plugged_in()) return refuse(ENODEV);
    if (!is_on || queued == 0) return refuse(EAGAIN);
    if (read(camera, &ticks, sizeof ticks) != sizeof ticks) return refuse(EAGAIN);
    int index = queue[0];
    memmove(queue, queue + 1, sizeof queue - sizeof queue[0]);
    queued--;
    unsigned char *at = pixels[index];
    for (int i = 0; i < BYTES; i += 2) {
        at[i] = (unsigned char)(16 + sequence % 200);
        at[i + 1] = 128;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    memset(buffer, 0, sizeof *buffer);
    buffer->index = (unsigned)index;
    buffer->type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    buffer->memory = V4L2_MEMORY_MMAP;
    buffer->bytesused = buffer->length = BYTES;
    /* The third picture is damaged. */
    buffer->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | (sequence == 2 ? V4L2_BUF_FLAG_ERROR : 0);
    buffer->timestamp.tv_sec = now.tv_sec;
    buffer->timestamp.tv_usec = now.tv_nsec / 1000;
    buffer->sequence = sequence++;
    return 0;
}

static int answer(unsigned long request, void *argument) {
    switch (request) {
    case VIDIOC_QUERYCAP: {
        struct v4l2_capability *it = argument;
        memset(it, 0, sizeof *it);
        strcpy((char *)it->card, "Shim");
        it->capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_META_CAPTURE;
        it->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
        return 0;
    }
    case VIDIOC_ENUM_FMT: {
        struct v4l2_fmtdesc *it = argument;
        if (it->index > 0 || it->type != V4L2_BUF_TYPE_VIDEO_CAPTURE) return refuse(EINVAL);
        it->pixelformat = V4L2_PIX_FMT_YUYV;
        return 0;
    }
    case VIDIOC_ENUM_FRAMESIZES: {
        struct v4l2_frmsizeenum *it = argument;
        if (it->index > 0 || it->pixel_format != V4L2_PIX_FMT_YUYV) return refuse(EINVAL);
        it->type = V4L2_FRMSIZE_TYPE_DISCRETE;
        it->discrete.width = WIDTH;
        it->discrete.height = HEIGHT;
        return 0;
    }
    case VIDIOC_ENUM_FRAMEINTERVALS: {
        struct v4l2_frmivalenum *it = argument;
        if (it->index > 0 || it->width != WIDTH || it->height != HEIGHT) return refuse(EINVAL);
        it->type = V4L2_FRMIVAL_TYPE_DISCRETE;
        it->discrete.numerator = 1;
        it->discrete.denominator = 30;
        return 0;
    }
    case VIDIOC_S_FMT: {
        struct v4l2_format *it = argument;
        if (it->type != V4L2_BUF_TYPE_VIDEO_CAPTURE) return refuse(EINVAL);
        it->fmt.pix.width = WIDTH;
        it->fmt.pix.height = HEIGHT;
        it->fmt.pix.pixelformat = V4L2_PIX_FMT_YUYV;
        it->fmt.pix.sizeimage = BYTES;
        return 0;
    }
    case VIDIOC_S_PARM: {
        struct v4l2_streamparm *it = argument;
        it->parm.capture.capability = V4L2_CAP_TIMEPERFRAME;
        it->parm.capture.timeperframe.numerator = 1;
        it->parm.capture.timeperframe.denominator = 30;
        return 0;
    }
    case VIDIOC_QUERYCTRL: {
        struct v4l2_queryctrl *it = argument;
        if (it->id != V4L2_CTRL_FLAG_NEXT_CTRL) return refuse(EINVAL);
        memset(it, 0, sizeof *it);
        it->id = V4L2_CID_BRIGHTNESS;
        it->type = V4L2_CTRL_TYPE_INTEGER;
        strcpy((char *)it->name, "Brightness");
        it->maximum = 255;
        it->step = 1;
        it->default_value = 128;
        return 0;
    }
    case VIDIOC_G_CTRL:
    case VIDIOC_S_CTRL: {
        struct v4l2_control *it = argument;
        if (it->id != V4L2_CID_BRIGHTNESS) return refuse(EINVAL);
        if (request == VIDIOC_S_CTRL) brightness = it->value;
        it->value = brightness;
        return 0;
    }
    case VIDIOC_REQBUFS: {
        struct v4l2_requestbuffers *it = argument;
        if (it->memory != V4L2_MEMORY_MMAP) return refuse(EINVAL);
        if (it->count > BUFFERS) it->count = BUFFERS;
        queued = 0;
        return 0;
    }
    case VIDIOC_QUERYBUF: {
        struct v4l2_buffer *it = argument;
        if (it->index >= BUFFERS) return refuse(EINVAL);
        it->length = BYTES;
        it->m.offset = it->index << 20;
        return 0;
    }
    case VIDIOC_QBUF: {
        struct v4l2_buffer *it = argument;
        if (!is_plugged_in()) return refuse(ENODEV);
        if (it->index >= BUFFERS || queued == BUFFERS) return refuse(EINVAL);
        queue[queued++] = (int)it->index;
        return 0;
    }
    case VIDIOC_DQBUF:
        return dequeue(argument);
    case VIDIOC_STREAMON:
    case VIDIOC_STREAMOFF:
        is_on = request == VIDIOC_STREAMON;
        if (!is_on) queued = 0;
        return set_timer(is_on);
    default:
        return refuse(ENOTTY);
    }
}

typedef int (*opening)(const char *, int, ...);

static int open_as(const char *name, const char *path, int flags, mode_t mode) {
    if (strcmp(path, device()) == 0 && is_plugged_in() && camera < 0) {
        is_on = 0;
        sequence = 0;
        return camera = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    }
    return ((opening)dlsym(RTLD_NEXT, name))(path, flags, mode);
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_as("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_as("open64", path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    /* Some libraries sign-extend the number. */
    if (fd == camera && fd >= 0) return answer(request & 0xFFFFFFFFul, argument);
    return ((int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl"))(fd, request, argument);
}

static void *map_as(const char *name, void *at, size_t length, int access, int flags, int fd,
                    off_t offset) {
    typedef void *(*mapping)(void *, size_t, int, int, int, off_t);
    mapping next = (mapping)dlsym(RTLD_NEXT, name);
    if (fd != camera || fd < 0) return next(at, length, access, flags, fd, offset);
    void *memory = next(NULL, length, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) pixels[(offset >> 20) % BUFFERS] = memory;
    return memory;
}

void *mmap(void *at, size_t length, int access, int flags, int fd, off_t offset) {
    return map_as("mmap", at, length, access, flags, fd, offset);
}

void *mmap64(void *at, size_t length, int access, int flags, int fd, off_t offset) {
    return map_as("mmap64", at, length, access, flags, fd, offset);
}

int close(int fd) {
    if (fd == camera) camera = -1;
    return ((int (*)(int))dlsym(RTLD_NEXT, "close"))(fd);
}
