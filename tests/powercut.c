/* A preload library under which only synced bytes and synced names survive: the device of tests/powercut.py.
 *
 * The program goes on working in POWERCUT_DATA as always. Beside it this library keeps in POWERCUT_SHADOW what a power cut would
 * leave: the bytes of each file as of its last fsync or fdatasync (inodes/INO-GENERATION), and the names in each directory as of its
 * last fsync (names/@DIRECTORY, with % for /). Nothing is really synced, so it is fast. Whoever kills the program builds from both
 * what a device may have left.
 *
 * - A write counts for a sync only when it has returned, so it is noted behind the write, never before.
 * - An inode's number is used again after its file is gone: a new file gets a generation of its own, which stands in `ids`.
 * - Lengths come with the sync of the data, as with fdatasync: fallocate, which may be a bare system call, needs no hook.
 *
 * POWERCUT_LIE makes it a device that lies: syncs of files whose path holds these words, or of names if it is `names`, do nothing. A torture
 * that does not find that out is worth nothing.
 *
 * cc -shared -fPIC -O1 -o powercut.so powercut.c -ldl -lpthread
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096L
#define FDS 65536

struct file {
    ino_t ino;
    unsigned generation;
    int lies;
    unsigned char *dirty; /* a byte for each block that was written since the last sync */
    size_t blocks;
    struct file *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;       /* the newest of each inode stands first */
static struct file *of_fd[FDS];
static unsigned generations;
static char data[PATH_MAX], shadow[PATH_MAX - 300];
static size_t data_len;
static const char *lie;
static int ids = -1;

static int (*real_open)(const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

static void die(const char *what)
{
    fprintf(stderr, "powercut: %s: %s\n", what, strerror(errno));
    abort();
}

static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        die(name);
    return found;
}

__attribute__((constructor)) static void start(void)
{
    real_open = find("open64");
    real_close = find("close");
    real_write = find("write");
    real_pwrite = find("pwrite64");
    real_ftruncate = find("ftruncate64");
    real_fsync = find("fsync");
    real_fdatasync = find("fdatasync");
    const char *d = getenv("POWERCUT_DATA"), *s = getenv("POWERCUT_SHADOW");
    if (!d || !s)
        return;
    if (strlen(d) >= sizeof data || strlen(s) >= sizeof shadow)
        die("a path that is too long");
    strcpy(shadow, s);
    char ids_path[PATH_MAX];
    snprintf(ids_path, sizeof ids_path, "%s/ids", shadow);
    ids = real_open(ids_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (ids < 0)
        die(ids_path);
    lie = getenv("POWERCUT_LIE");
    strcpy(data, d);
    data_len = strlen(data);
}

static int is_ours(const char *path)
{
    return data_len && strncmp(path, data, data_len) == 0 && (path[data_len] == '/' || path[data_len] == 0);
}

static struct file *file_of(ino_t ino)
{
    for (struct file *file = files; file; file = file->next)
        if (file->ino == ino)
            return file;
    return NULL;
}

static struct file *enter(ino_t ino, unsigned generation)
{
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        die("memory");
    file->ino = ino;
    file->generation = generation;
    file->next = files;
    files = file;
    return file;
}

static void opened(int fd, const char *path, int is_new)
{
    struct stat st;
    if (fd < 0 || fd >= FDS || fstat(fd, &st) || !S_ISREG(st.st_mode))
        return;
    struct file *file = is_new ? NULL : file_of(st.st_ino);
    if (is_new) {
        char line[64];
        file = enter(st.st_ino, ++generations);
        int len = snprintf(line, sizeof line, "%lu %u\n", (unsigned long)st.st_ino, file->generation);
        if (real_write(ids, line, len) != len)
            die("ids");
    } else if (!file) {
        file = enter(st.st_ino, 0);
    }
    file->lies = lie && strstr(path + data_len, lie);
    of_fd[fd] = file;
}

static int open_any(const char *path, int flags, mode_t mode)
{
    if (!is_ours(path))
        return real_open(path, flags, mode);
    struct stat st;
    pthread_mutex_lock(&mutex);
    int is_new = (flags & O_CREAT) && stat(path, &st) != 0;
    int fd = real_open(path, flags, mode), err = errno;
    opened(fd, path, is_new && fd >= 0);
    pthread_mutex_unlock(&mutex);
    errno = err;
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    return open_any(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    return open_any(path, flags | O_LARGEFILE, mode);
}

int close(int fd)
{
    if (fd >= 0 && fd < FDS && of_fd[fd]) {
        pthread_mutex_lock(&mutex);
        of_fd[fd] = NULL;
        pthread_mutex_unlock(&mutex);
    }
    return real_close(fd);
}

/* With the mutex. */
static void note(struct file *file, off_t from, off_t to)
{
    size_t last = (to + BLOCK - 1) / BLOCK;
    if (last > file->blocks) {
        size_t blocks = last * 2;
        file->dirty = realloc(file->dirty, blocks);
        if (!file->dirty)
            die("memory");
        memset(file->dirty + file->blocks, 0, blocks - file->blocks);
        file->blocks = blocks;
    }
    for (size_t block = from / BLOCK; block < last; block++)
        file->dirty[block] = 1;
}

static void written(int fd, off_t from, ssize_t bytes)
{
    pthread_mutex_lock(&mutex);
    if (of_fd[fd])
        note(of_fd[fd], from, from + bytes);
    pthread_mutex_unlock(&mutex);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at)
{
    ssize_t done = real_pwrite(fd, bytes, len, at);
    if (done > 0 && fd < FDS && of_fd[fd])
        written(fd, at, done);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return pwrite64(fd, bytes, len, at);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    ssize_t done = real_write(fd, bytes, len);
    if (done > 0 && fd < FDS && of_fd[fd]) {
        int err = errno;
        off_t end = lseek(fd, 0, SEEK_CUR);
        written(fd, end - done, done);
        errno = err;
    }
    return done;
}

int ftruncate64(int fd, off64_t len)
{
    struct stat st;
    int ours = fd >= 0 && fd < FDS && of_fd[fd] && fstat(fd, &st) == 0;
    int done = real_ftruncate(fd, len);
    if (done == 0 && ours && len < st.st_size) {
        written(fd, len, st.st_size - len); /* what is cut off reads as zeros if the file grows again */
    }
    return done;
}

int ftruncate(int fd, off_t len)
{
    return ftruncate64(fd, len);
}

static void sync_file(int fd, struct file *file)
{
    char path[PATH_MAX];
    static char buffer[64 * BLOCK];
    struct stat st;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int from = real_open(path, O_RDONLY); /* the program's own may be for direct I/O */
    snprintf(path, sizeof path, "%s/inodes/%lu-%u", shadow, (unsigned long)file->ino, file->generation);
    int to = real_open(path, O_WRONLY | O_CREAT, 0600);
    if (from < 0 || to < 0 || fstat(from, &st) || real_ftruncate(to, st.st_size))
        die(path);
    for (size_t block = 0; block < file->blocks; block++) {
        size_t run = 0;
        while (run < 64 && block + run < file->blocks && file->dirty[block + run])
            file->dirty[block + run++] = 0;
        if (!run)
            continue;
        ssize_t got = pread(from, buffer, run * BLOCK, block * BLOCK);
        if (got < 0 || (got > 0 && real_pwrite(to, buffer, got, block * BLOCK) != got))
            die(path);
        block += run - 1;
    }
    real_close(from);
    real_close(to);
}

static void sync_names(const char *path)
{
    char name[PATH_MAX], before[PATH_MAX + 8], entry[PATH_MAX + 256];
    snprintf(name, sizeof name, "%s/names/@%s", shadow, path + data_len);
    for (char *at = name + strlen(shadow) + 8; *at; at++)
        if (*at == '/')
            *at = '%';
    snprintf(before, sizeof before, "%s.new", name);
    FILE *out = fopen(before, "w");
    DIR *dir = opendir(path);
    if (!out || !dir)
        die(before);
    for (struct dirent *each; (each = readdir(dir));) {
        struct stat st;
        snprintf(entry, sizeof entry, "%s/%s", path, each->d_name);
        if (each->d_name[0] == '.' || lstat(entry, &st))
            continue;
        if (S_ISDIR(st.st_mode)) {
            fprintf(out, "d %s\n", each->d_name);
        } else if (S_ISREG(st.st_mode)) {
            struct file *file = file_of(st.st_ino);
            fprintf(out, "f %s %lu-%u\n", each->d_name, (unsigned long)st.st_ino, file ? file->generation : 0);
        }
    }
    closedir(dir);
    if (fclose(out) || rename(before, name))
        die(name);
}

static int sync_any(int fd, int (*real)(int))
{
    char link[64], path[PATH_MAX];
    struct stat st;
    if (!data_len || fstat(fd, &st))
        return real(fd);
    if (S_ISDIR(st.st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(link, path, sizeof path - 1);
        path[len < 0 ? 0 : len] = 0;
        if (!is_ours(path))
            return real(fd);
        pthread_mutex_lock(&mutex);
        if (!lie || strcmp(lie, "names") != 0)
            sync_names(path);
        pthread_mutex_unlock(&mutex);
        return 0;
    }
    if (fd >= FDS || !of_fd[fd])
        return real(fd);
    pthread_mutex_lock(&mutex);
    if (of_fd[fd] && !of_fd[fd]->lies)
        sync_file(fd, of_fd[fd]);
    pthread_mutex_unlock(&mutex);
    return 0;
}

int fsync(int fd)
{
    return sync_any(fd, real_fsync);
}

int fdatasync(int fd)
{
    return sync_any(fd, real_fdatasync);
}
