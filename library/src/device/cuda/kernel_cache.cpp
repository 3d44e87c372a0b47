#include "device/cuda/kernel_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/setting.h"
#include "base/status.h"

namespace pw::settings {

const PathSetting cache{"cache", "", "The folder for compiled device code. Empty: ~/.cache/peerway."};

}  // namespace pw::settings

namespace pw::cuda {
namespace {

struct Header {
  char magic[8];
  uint64_t key_bytes;
  uint64_t image_bytes;
  uint64_t checksum;  ///< of the image
};
constexpr char kMagic[8] = {'P', 'W', 'K', 'E', 'R', 'N', '1', '\n'};

// Never runs code that another user could have written: only this user may be able to write the file.
bool is_ours(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<std::string> read_image(const std::string& path, const std::string& key) {
  if (!is_ours(path)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  const std::string content = text.str();
  Header header;
  if (content.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, content.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_bytes != key.size() ||
      content.size() != sizeof header + key.size() + header.image_bytes ||
      content.compare(sizeof header, key.size(), key) != 0)
    return std::nullopt;
  std::string image = content.substr(sizeof header + key.size());
  if (hash_of(image) != header.checksum) return std::nullopt;
  return image;
}

// Writes to a temporary name and renames it, so that a reader sees all of it or nothing.
void write_image(const std::string& path, const std::string& key, const std::string& image) {
  static std::atomic<unsigned> serial{0};
  const std::string temporary = format("{}.{}.{}", path, getpid(), serial++);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key_bytes = key.size();
  header.image_bytes = image.size();
  header.checksum = hash_of(image);
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file << key << image;
  file.close();
  if (file.fail() || chmod(temporary.c_str(), 0600) != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    log_once(LogLevel::warning,
             format("compiled kernels cannot be kept in {}{}; they are compiled anew in each process. Make "
                    "the folder "
                    "writable, or point the setting cache (PEERWAY_CACHE) at one that is",
                    std::filesystem::path(path).parent_path().string(), errno_text(error)));
  }
}

/// Held while an image is compiled, so that the other ranks of a host wait for it and do not compile it, too.
/// A holder that is killed holds it no more. Its file stays, empty, until the next holder removes it.
class CompileLock {
 public:
  explicit CompileLock(std::string path) : path_(std::move(path)) {
    using namespace std::chrono_literals;
    constexpr auto kMostWait = 60s;  // the holder may be stopped; then both compile
    file_ = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file_ < 0) return;  // the folder cannot be written
    const auto end = std::chrono::steady_clock::now() + kMostWait;
    while (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
           std::chrono::steady_clock::now() < end) {
      waited_ = true;
      std::this_thread::sleep_for(5ms);
    }
  }
  ~CompileLock() {
    if (file_ < 0) return;
    unlink(path_.c_str());  // whoever waits for it finds the image
    flock(file_, LOCK_UN);  // also if a child that was forked meanwhile has the file
    close(file_);
  }
  CompileLock(const CompileLock&) = delete;
  [[nodiscard]] bool waited() const { return waited_; }

 private:
  std::string path_;
  int file_ = -1;
  bool waited_ = false;
};

void make_folder_of(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
}

}  // namespace

std::string cache_file(const std::string& folder, const std::string& key) {
  return format("{}/{:016x}.kernel", folder, hash_of(key));
}

std::string cached_image(const std::string& folder, const std::string& key,
                         const std::function<std::string()>& compile) {
  const std::string path = cache_file(folder, key);
  if (auto image = read_image(path, key)) return *image;
  make_folder_of(path);
  std::optional<CompileLock> lock(std::in_place, path + ".lock");
  if (auto image = read_image(path, key)) return *image;
  if (lock->waited()) lock.reset();  // who had it could not compile or store the image: nobody waits again
  std::string image = compile();
  write_image(path, key, image);
  return image;
}

std::string kernel_folder() {
  const std::string folder = settings::cache.text();
  return (folder.empty() ? cache_home() : folder) + "/kernels";
}

}  // namespace pw::cuda
