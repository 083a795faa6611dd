/* A preload library for tests/session_ends.py: once the file FAILED_SYNC exists, every sync of a file in a directory `wal` fails with EIO.
 *
 * cc -shared -fPIC -O1 -o failed-sync.so failed-sync.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd)
{
    const char *flag = getenv("FAILED_SYNC");
    char link[64], path[PATH_MAX];
    ssize_t len;

    if (!flag || access(flag, F_OK))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof path - 1);
    if (len < 0)
        return 0;
    path[len] = 0;
    return strstr(path, "/wal/") != NULL;
}

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

    if (fails(fd)) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");

    if (fails(fd)) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}
