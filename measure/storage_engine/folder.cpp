// What there is of a file in the page cache, what space there is, and the one folder in which a run has all
// its files.
//
// A folder PLACE/peerway-storage-TOKEN and all names in it begin with the token, except its manifest.json. So
// what is removed is never somebody else's: neither a file nor what a link points to.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "operations.h"

namespace pw::storage {
namespace {

constexpr const char* kPrefix = "peerway-storage-";
constexpr const char* kManifest = "manifest.json";
constexpr size_t kNamed = 8;  // the most foreign files that an answer names

struct Closed {
  int descriptor;
  ~Closed() { close(descriptor); }
};

bool is_token(const std::string& token) {
  return token.size() == 12 && token.find_first_not_of("0123456789abcdef") == token.npos;
}

std::string folder_of(const Words& words) {
  const std::string token = words.text("token");
  if (!is_token(token)) throw Misuse("token= must be 12 hexadecimal digits");
  return words.text("place") + "/" + kPrefix + token;
}

std::vector<std::string> names_in(int folder) {
  DIR* const open_folder =
      fdopendir(must(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open of a folder"));
  if (!open_folder) throw Failed("fdopendir", errno);
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(open_folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(open_folder);
  return names;
}

// Removes what begins so, and in its folders what begins with the token; what does not begin with the token
// goes to `foreign`.
void remove_own(int folder, const std::string& token, const std::string& begins,
                std::vector<std::string>& foreign, uint64_t& removed) {
  for (const std::string& name : names_in(folder)) {
    if (name == kManifest) continue;
    if (name.compare(0, token.size() + 1, token + ".") != 0) {
      foreign.push_back(name);
      continue;
    }
    if (name.compare(0, begins.size(), begins) != 0) continue;
    if (unlinkat(folder, name.c_str(), 0) == 0) {
      ++removed;
      continue;
    }
    if (errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) throw Failed("unlink", errno);
    const int opened = openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const Closed inner{must(opened, "open of a folder")};
    const size_t before = foreign.size();
    remove_own(inner.descriptor, token, token + ".", foreign, removed);
    if (foreign.size() == before) must(unlinkat(folder, name.c_str(), AT_REMOVEDIR), "rmdir");
  }
}

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

struct Range {
  uint64_t offset, length;
};
struct Cached {
  uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

}  // namespace

// Counts the pages in the page cache, of a whole file or of `length` bytes from `offset` on.
Answer residency(const Words& words) {
  const Closed file{must(open(words.text("path").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open")};
  struct stat status;
  must(fstat(file.descriptor, &status), "fstat");
  const auto whole = static_cast<uint64_t>(status.st_size);
  const uint64_t offset = std::min(words.number("offset", 0), whole);
  const uint64_t size = std::min(words.number("length", whole), whole - offset);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (offset % page) throw Misuse("offset= must be a multiple of a page");
  Answer answer;
  answer.add("size", size);
  Range all{offset, size};
  Cached state{};
  if (syscall(SYS_cachestat, file.descriptor, &all, &state, 0) == 0)
    return answer.add("resident", std::min(size, state.cached * page)).add("by", "cachestat");
  if (size == 0) return answer.add("resident", uint64_t{0}).add("by", "its size");
  void* const mapped =
      mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) throw Failed("mmap", errno);
  std::vector<unsigned char> pages((size + page - 1) / page);
  const int result = mincore(mapped, size, pages.data());
  const int number = errno;
  munmap(mapped, size);
  if (result < 0) throw Failed("mincore", number);
  const auto count =
      static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; }));
  return answer.add("resident", std::min(size, count * page)).add("by", "mincore");
}

Answer let_go(const Words& words) {
  const Closed file{must(open(words.text("path").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW), "open")};
  must(fsync(file.descriptor), "fsync");  // a dirty page would stay
  if (const int wrong = posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED))
    throw Failed("posix_fadvise", wrong);
  return {};
}

Answer space(const Words& words) {
  struct statvfs space;
  struct statfs kind;
  must(statvfs(words.text("place").c_str(), &space), "statvfs");
  must(statfs(words.text("place").c_str(), &kind), "statfs");
  const uint64_t unit = space.f_frsize ? space.f_frsize : space.f_bsize;
  struct stat own;
  must(stat(words.text("place").c_str(), &own), "stat");
  Answer answer;
  answer.add("free", space.f_bavail * unit)
      .add("size", space.f_blocks * unit)
      .add("used", (space.f_blocks - space.f_bfree) * unit);
  answer.add("free_files", static_cast<uint64_t>(space.f_favail)).add("counts_files", space.f_files != 0);
  answer.add("read_only", (space.f_flag & ST_RDONLY) != 0).add("magic", static_cast<uint64_t>(kind.f_type));
  answer.add("device", std::to_string(major(own.st_dev)) + ":" + std::to_string(minor(own.st_dev)));
  return answer.add("folder", S_ISDIR(own.st_mode));
}

Answer make_folder(const Words& words) {
  const std::string folder = folder_of(words), text = words.text("manifest");
  must(mkdir(folder.c_str(), 0700), "mkdir");
  const std::string name = folder + "/" + kManifest;
  int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int wrong = file < 0 ? errno : 0;
  if (!wrong && write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    wrong = errno ? errno : ENOSPC;
  if (file >= 0 && (fsync(file) < 0 || close(file) < 0) && !wrong) wrong = errno;
  if (wrong) {
    unlink(name.c_str());
    rmdir(folder.c_str());
    throw Failed("write of the manifest", wrong);
  }
  return {};
}

// The folders of earlier runs in a place, each with its manifest, or "" where there is none to read.
Answer list_folders(const Words& words) {
  const Closed place{
      must(open(words.text("place").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open of a folder")};
  std::vector<std::string> tokens, manifests;
  for (const std::string& name : names_in(place.descriptor)) {
    if (name.rfind(kPrefix, 0) != 0 || !is_token(name.substr(std::strlen(kPrefix)))) continue;
    tokens.push_back(name.substr(std::strlen(kPrefix)));
    char text[4096];
    const int file =
        openat(place.descriptor, (name + "/" + kManifest).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t count = file < 0 ? 0 : read(file, text, sizeof text);
    if (file >= 0) close(file);
    manifests.emplace_back(text, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return Answer().list("tokens", tokens).list("manifests", manifests);
}

// The files whose names go on with `begins` behind the token; with an empty one all, and the folder itself.
Answer remove_folder(const Words& words) {
  const std::string folder = folder_of(words);
  std::vector<std::string> foreign;
  uint64_t removed = 0;
  const Closed inside{
      must(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), "open of a folder")};
  const std::string token = words.text("token"), begins = words.text("begins");
  remove_own(inside.descriptor, token, token + "." + begins, foreign, removed);
  if (foreign.empty() && begins.empty()) {
    if (unlinkat(inside.descriptor, kManifest, 0) < 0 && errno != ENOENT)
      throw Failed("unlink of the manifest", errno);
    must(rmdir(folder.c_str()), "rmdir");
  }
  const uint64_t count = foreign.size();
  foreign.resize(std::min(foreign.size(), kNamed));
  return Answer().add("removed", removed).add("foreign", count).list("names", foreign);
}

}  // namespace pw::storage
