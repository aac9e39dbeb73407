/* Faults that no machine has when it is asked to: loaded before libc into the program under
 * test, and into all that it starts.
 *
 * PLANTED_EIO=AFTER:END    of the writes and syncs of files whose path ends so, all behind the
 *                          first AFTER fail, as on a disk that breaks.
 * PLANTED_STEP=NS:SECONDS  from the moment NS nanoseconds after 1970 on, the wall clock shows so
 *                          many seconds more, in all processes at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static int breaks(int fd) {
    const char *order = getenv("PLANTED_EIO");
    char link[32], path[PATH_MAX];
    char *end;
    if (order == NULL)
        return 0;
    long after = strtol(order, &end, 10);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    ssize_t wanted = strlen(++end);
    if (length < wanted || memcmp(path + length - wanted, end, wanted) != 0)
        return 0;
    if (atomic_fetch_add(&calls, 1) < after)
        return 0;
    errno = EIO;
    return 1;
}

/* The same function of libc, unless it is to fail. */
#define PLANT(result, name, parameters, arguments)                                  \
    result name parameters {                                                        \
        static result(*next) parameters;                                            \
        if (next == NULL)                                                           \
            next = (result(*) parameters)dlsym(RTLD_NEXT, #name);                   \
        return breaks(fd) ? -1 : next arguments;                                    \
    }

PLANT(ssize_t, write, (int fd, const void *bytes, size_t count), (fd, bytes, count))
PLANT(ssize_t, pwrite64, (int fd, const void *bytes, size_t count, off64_t at), (fd, bytes, count, at))
PLANT(int, fsync, (int fd), (fd))
PLANT(int, fdatasync, (int fd), (fd))

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL)
        next = dlsym(RTLD_NEXT, "clock_gettime");
    int result = next(clock, now);
    const char *order = getenv("PLANTED_STEP");
    char *end;
    if (order == NULL || result != 0 || clock != CLOCK_REALTIME)
        return result;
    long long at = strtoll(order, &end, 10);
    if (now->tv_sec * 1000000000LL + now->tv_nsec >= at)
        now->tv_sec += strtoll(end + 1, NULL, 10);
    return result;
}
