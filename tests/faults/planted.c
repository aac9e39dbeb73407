/* Faults that no machine has when it is asked to: loaded before libc into the program under
 * test, and into all that it starts.
 *
 * PLANTED_EIO=AFTER:END    of the writes and syncs of files whose path ends so, all behind the
 *                          first AFTER fail, as on a disk that breaks.
 * PLANTED_STEP=NS:SECONDS  from the moment NS nanoseconds after 1970 on, the wall clock shows so
 *                          many seconds more, in all processes at once.
 * PLANTED_CUT=HOST HOW MS FILE TEXT|TEXT
 *                          the connection of ssh to the host is cut, once, which makes the file:
 *                          so many milliseconds after the texts have gone through it in the
 *                          clear, one after the other, or, without a text, after the end of its
 *                          standard input. HOW is kill, which ends ssh, or tcp, which ends its
 *                          connection. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

/* What is to be cut; without a host in another process than the one with the connection. */
static struct {
    char host[64], how[8], file[PATH_MAX], text[128];
    /* The one that is waited for. */
    char *next;
    long long after_ms, at_ms;
    ino_t input;
} cut;

/* The process that has the connection carries the sessions of the others, too. */
__attribute__((constructor)) static void is_to_be_cut(void) {
    const char *order = getenv("PLANTED_CUT");
    char line[16384];
    struct stat input;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : pread(file, line, sizeof line - 1, 0);
    close(file);
    if (order == NULL || length <= 0 || fstat(0, &input) != 0)
        return;
    line[length] = 0;
    if (sscanf(order, "%63s %7s %lld %4095s %127[^\n]", cut.host, cut.how, &cut.after_ms, cut.file,
               cut.text) < 4)
        abort();
    cut.next = cut.text;
    int is_first = 0, is_to_host = 0;
    for (char *word = line; word < line + length; word += strlen(word) + 1) {
        is_first |= strcmp(word, "ControlMaster=yes") == 0;
        is_to_host |= strcmp(word, "--") == 0 && strcmp(word + 3, cut.host) == 0;
    }
    cut.input = input.st_ino;
    if (!is_first || !is_to_host || access(cut.file, F_OK) == 0)
        cut.host[0] = 0;
}

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Looks at what went through; of `length` 0 nothing more will. */
static void cut_behind(int fd, const void *bytes, ssize_t length) {
    int error = errno;
    struct stat file;
    if (cut.host[0] == 0 || length < 0)
        return;
    size_t wanted = strcspn(cut.next, "|");
    int is_there = wanted > 0 ? memmem(bytes, length, cut.next, wanted) != NULL
                              : length == 0 && fstat(fd, &file) == 0 && file.st_ino == cut.input;
    if (is_there && cut.next[wanted] == '|')
        cut.next += wanted + 1;
    else if (is_there && cut.at_ms == 0)
        cut.at_ms = now_ms() + cut.after_ms;
    if (cut.at_ms == 0 || now_ms() < cut.at_ms)
        return;
    cut.host[0] = 0;
    close(open(cut.file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    if (strcmp(cut.how, "kill") == 0)
        kill(getpid(), SIGKILL);
    for (int fd = 3; fd < 256; fd++) {
        int family = 0;
        socklen_t size = sizeof family;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_INET)
            shutdown(fd, SHUT_RDWR);
    }
    errno = error;
}

/* The same function of libc. */
#define NEXT(result, name, parameters)                                              \
    static result(*next) parameters;                                                \
    if (next == NULL)                                                               \
        next = (result(*) parameters)dlsym(RTLD_NEXT, #name)

/* That, unless it is to fail. */
#define PLANT(result, name, parameters, arguments)                                  \
    result name parameters {                                                        \
        NEXT(result, name, parameters);                                             \
        return breaks(fd) ? -1 : next arguments;                                    \
    }

PLANT(ssize_t, pwrite64, (int fd, const void *bytes, size_t count, off64_t at), (fd, bytes, count, at))
PLANT(int, fsync, (int fd), (fd))
PLANT(int, fdatasync, (int fd), (fd))

ssize_t write(int fd, const void *bytes, size_t count) {
    NEXT(ssize_t, write, (int, const void *, size_t));
    cut_behind(fd, bytes, count);
    return breaks(fd) ? -1 : next(fd, bytes, count);
}

ssize_t read(int fd, void *bytes, size_t count) {
    NEXT(ssize_t, read, (int, void *, size_t));
    ssize_t length = next(fd, bytes, count);
    cut_behind(fd, bytes, length);
    return length;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(int, clock_gettime, (clockid_t, struct timespec *));
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
