// Operations on many small files: all streams in one folder, or each in a folder of its own.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "operations.h"
#include "streams.h"

namespace pw::storage {
namespace {

void create(const std::string& name, const char* data, uint64_t size) {
  const int file =
      must(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), "create");
  const ssize_t moved = size ? write(file, data, size) : 0;
  const int wrong = moved < 0 ? errno : moved < static_cast<ssize_t>(size) ? ENOSPC : 0;
  if (close(file) < 0 || wrong) throw Failed("write of a small file", wrong ? wrong : errno);
}

void read_whole(const std::string& name, char* to, uint64_t size) {
  const int file = must(open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open");
  const ssize_t moved = read(file, to, size);
  const int wrong = moved < 0 ? errno : moved < static_cast<ssize_t>(size) ? EIO : 0;
  if (close(file) < 0 || wrong) throw Failed("read of a small file", wrong ? wrong : errno);
}

}  // namespace

Answer small_files(const Words& words) {
  const std::string path = words.text("path");
  const uint64_t count = words.number("count"), size = words.number("size");
  const int streams = static_cast<int>(words.number("streams"));
  const bool one_folder = words.number("shared");
  if (size > 1 << 20 || count == 0 || count > 10000000 || streams < 1 || streams > 4096)
    throw Misuse("size= up to 1 MiB, count= from 1 to 10,000,000 and streams= from 1 to 4096");
  const Data data(words.number("seed"));
  const auto folder = [&](int stream) { return path + ".d" + std::to_string(one_folder ? 0 : stream); };
  for (int stream = 0; stream < (one_folder ? 1 : streams); ++stream)
    must(mkdir(folder(stream).c_str(), 0700), "mkdir");
  const uint64_t rounded = (size + kSector - 1) / kSector * kSector + kSector;
  const std::string token = path.substr(path.rfind('/') + 1);
  const auto name = [&](int stream, uint64_t i, const char* kind) {
    return folder(stream) + "/" + token + "." + kind + std::to_string(stream) + "." + std::to_string(i);
  };
  Answer answer;
  uint64_t cpu_us = 0;
  const auto phase = [&](const char* title, const std::function<void(int, uint64_t, char*)>& each) {
    const auto total = run_streams(streams, false, [&](Stream& stream) {
      std::vector<char> memory(rounded);
      data.fill(memory.data(), static_cast<uint64_t>(stream.number) * rounded, rounded);
      stream.begin();
      for (uint64_t i = 0; i < count; ++i) each(stream.number, i, memory.data());
    });
    cpu_us += total.cpu_us;
    answer.add(std::string(title) + "_ns", total.ns);
  };
  phase("create", [&](int s, uint64_t i, char* memory) { create(name(s, i, "a"), memory, size); });
  phase("stat", [&](int s, uint64_t i, char*) {
    struct stat status;
    must(stat(name(s, i, "a").c_str(), &status), "stat");
    if (static_cast<uint64_t>(status.st_size) != size) throw Failed("stat (the size is another one)", EIO);
  });
  phase("read", [&](int s, uint64_t i, char* memory) { read_whole(name(s, i, "a"), memory, size); });
  phase("rename", [&](int s, uint64_t i, char*) {
    must(rename(name(s, i, "a").c_str(), name(s, i, "b").c_str()), "rename");
  });
  phase("remove", [&](int s, uint64_t i, char*) { must(unlink(name(s, i, "b").c_str()), "unlink"); });
  for (int stream = 0; stream < (one_folder ? 1 : streams); ++stream)
    must(rmdir(folder(stream).c_str()), "rmdir");
  return answer.add("cpu_us", cpu_us);
}

}  // namespace pw::storage
