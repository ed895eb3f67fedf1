/* What a test makes of the disk below the folder KEYWAY_TEST_DISK, while a file of that name stands
 * in the folder KEYWAY_TEST_MARKS: "slow", and each sync takes two seconds; "read-only", and
 * nothing can be written, as when a kernel mounts a disk read-only that has failed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int is_on_disk(int fd) {
    const char *disk = getenv("KEYWAY_TEST_DISK");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!disk || length < 0) return 0;
    path[length] = 0;
    return strncmp(path, disk, strlen(disk)) == 0;
}

static int is_marked(const char *mark) {
    const char *marks = getenv("KEYWAY_TEST_MARKS");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", marks ? marks : "", mark);
    return access(path, F_OK) == 0;
}

static int sync_by(const char *name, int fd) {
    if (is_on_disk(fd) && is_marked("slow")) nanosleep(&(struct timespec){2, 0}, NULL);
    if (is_on_disk(fd) && is_marked("read-only")) return errno = EROFS, -1;
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    return real(fd);
}

int fdatasync(int fd) { return sync_by("fdatasync", fd); }

int fsync(int fd) { return sync_by("fsync", fd); }

ssize_t write(int fd, const void *bytes, size_t count) {
    if (is_on_disk(fd) && is_marked("read-only")) return errno = EROFS, -1;
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    return real(fd, bytes, count);
}
