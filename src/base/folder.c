/* SPDX-License-Identifier: MIT
 * Folders as caches: made, listed, thinned out. */
#define _GNU_SOURCE
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t to_ns(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

int64_t rung_wall_clock_ns(void) {
  struct timespec now;
  return clock_gettime(CLOCK_REALTIME, &now) ? 0 : to_ns(now);
}

bool rung_folder_make(const char *path) {
  char copy[4096];
  const size_t length = strlen(path);
  if (!length || length >= sizeof copy) return false;
  memcpy(copy, path, length + 1);
  for (char *p = copy + 1;; p++) {
    const char c = *p;
    if (c && c != '/') continue;
    *p = 0;
    if (mkdir(copy, 0777) && errno != EEXIST && c == 0) return false;
    *p = c;
    if (!c) break;
  }
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

rung_status rung_folder_scan(rung_host *host, const char *path, rung_folder_fn *fn, void *self, rung_error *error) {
  errno = EIO;
  DIR *folder = rung_host_fault(host, RUNG_FAULT_READ) ? NULL : opendir(path);
  if (!folder) return rung_fail(error, errno == ENOENT ? RUNG_NOT_FOUND : RUNG_IO, "%s: %s", path, strerror(errno));
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    struct stat info;
    if (e->d_name[0] == '.' || fstatat(dirfd(folder), e->d_name, &info, AT_SYMLINK_NOFOLLOW)) continue;
    if (!S_ISREG(info.st_mode)) continue;
    const int64_t read = to_ns(info.st_atim), written = to_ns(info.st_mtim);
    const rung_folder_entry entry = {.name = e->d_name,
                                     .bytes = (uint64_t)info.st_size,
                                     .used_ns = read > written ? read : written,
                                     .modified_ns = written};
    fn(self, &entry);
  }
  closedir(folder);
  return RUNG_OK;
}

bool rung_file_remove(const char *path) { return unlink(path) == 0 || errno == ENOENT; }

void rung_file_touch(const char *path) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
  (void)utimensat(AT_FDCWD, path, times, 0);
}

/* A writer holds a lock on its file while it lives, on whatever machine or in whatever container that is. Between
 * making the file and locking it there is a moment, so what is a few seconds old only is left alone. */
bool rung_file_is_left_behind(const char *path) {
  enum { SECONDS = 5 };
  const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  struct stat info;
  const bool old = fstat(file, &info) == 0 && rung_wall_clock_ns() - to_ns(info.st_ctim) > SECONDS * 1000000000LL;
  const bool free_ = old && flock(file, LOCK_EX | LOCK_NB) == 0;
  close(file);
  return free_;
}
