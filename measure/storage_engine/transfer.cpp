// Sequential and random reads and writes, and the comparison of a whole file with what was written.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>

#include "data.h"
#include "operations.h"
#include "ring.h"
#include "streams.h"

namespace pw::storage {
namespace {

constexpr uint64_t kPage = 4096, kHugePage = 2 << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<char[], Free>;

// In huge pages where the kernel has them: with small ones O_DIRECT is as fast as their places in memory
// happen to be contiguous.
Buffer buffer(uint64_t size) {
  const uint64_t page = size < kHugePage ? kPage : kHugePage, whole = (size + page - 1) / page * page;
  char* const memory = static_cast<char*>(std::aligned_alloc(page, whole));
  if (!memory) throw Failed("aligned_alloc", ENOMEM);
  if (page == kHugePage) madvise(memory, whole, MADV_HUGEPAGE);
  std::memset(memory, 0, size);  // so that no page fault is measured
  return Buffer(memory);
}

// A descriptor that is closed with an answer: network file systems report errors of writes there.
class File {
 public:
  File(const std::string& path, int flags, bool direct)
      : descriptor_(must(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | (direct ? O_DIRECT : 0), 0600),
                         direct ? "open with O_DIRECT" : "open")) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  void shut() { must(close(std::exchange(descriptor_, -1)), "close"); }

 private:
  int descriptor_;
};

// What streams have in common. Each has a file of its own, PATH.0, PATH.1, ..., or with `shared` a part of
// the one file PATH.0. This file may have `parts` of other nodes as well; `first` is the first of this node.
struct Options {
  explicit Options(const Words& words)
      : path(words.text("path")),
        size(words.number("size")),
        block(words.number("block")),
        streams(static_cast<int>(words.number("streams"))),
        depth(static_cast<unsigned>(words.number("depth"))),
        direct(words.number("direct")),
        fsync(words.number("fsync")),
        shared(words.number("shared")),
        hold(words.number("hold", 0)),
        first(words.number("first", 0)),
        parts(std::max(words.number("parts", 0), first + static_cast<uint64_t>(streams))),
        data(words.number("seed")) {
    const bool power = block && (block & (block - 1)) == 0;
    if (!power || block % kSector || block > 1 << 30 || size % block || size == 0)
      throw Misuse("block= must be a power of two from 512, and size= a multiple of it");
    if (streams < 1 || streams > 4096) throw Misuse("streams= must be from 1 to 4096");
    if (direct && block % kPage) throw Misuse("with direct= a block is a multiple of 4096");
    if (depth > 1024 || (depth & (depth - 1))) throw Misuse("depth= must be 0 or a power of two up to 1024");
  }
  std::string of(int stream) const { return path + "." + std::to_string(shared ? 0 : stream); }
  uint64_t start(int stream) const { return shared ? (first + static_cast<uint64_t>(stream)) * size : 0; }

  std::string path;
  uint64_t size, block;
  int streams;
  unsigned depth;
  bool direct, fsync, shared, hold;
  uint64_t first, parts;
  Data data;
};

// The rest of an operation that moved less than it should have.
void complete(bool write, int file, char* at, uint64_t size, uint64_t offset, int32_t result,
              uint64_t moved) {
  for (;;) {
    if (result < 0 && result != -EINTR && result != -EAGAIN)
      throw Failed(write ? "write" : "read", -result, moved);
    if (result == 0)
      throw Failed(write ? "write (nothing was taken)" : "read (the file is shorter than it was)", EIO,
                   moved);
    const auto done = static_cast<uint64_t>(std::max(result, 0));
    if (done >= size) return;
    at += done, offset += done, size -= done;
    const auto place = static_cast<off_t>(offset);
    const ssize_t next = write ? pwrite(file, at, size, place) : pread(file, at, size, place);
    result = next < 0 ? -errno : static_cast<int32_t>(next);
  }
}

// Moves [start, start + size) in blocks, `depth` of them under way; a slot is used again when its block has
// ended. False: a stamp was wrong.
bool sequential(const Options& options, bool write, int file, uint64_t start, Ring& ring, char* memory,
                uint64_t slots) {
  const uint64_t depth = ring.uring() ? options.depth : 1, blocks = options.size / options.block;
  std::vector<bool> busy(slots);
  bool right = true;
  uint64_t next = 0, done = 0;
  while (done < blocks) {
    while (next < blocks && next - done < depth && !busy[next % slots]) {
      const uint64_t offset = start + next * options.block;
      char* const at = memory + next % slots * options.block;
      if (write) options.data.restamp(at, offset, options.block);
      busy[next % slots] = true;
      ring.start(write, file, at, static_cast<uint32_t>(options.block), offset, next);
      ++next;
    }
    const Ring::Done end = ring.wait();
    const uint64_t offset = start + end.tag * options.block;
    char* const at = memory + end.tag % slots * options.block;
    complete(write, file, at, options.block, offset, end.result, done * options.block);
    if (!write) right = options.data.stamped(at, offset, options.block) && right;
    busy[end.tag % slots] = false;
    ++done;
  }
  return right;
}

void add(Answer& answer, const Together& total, bool uring) {
  answer.add("ns", total.ns).list("stream_ns", total.each_ns).add("cpu_us", total.cpu_us);
  answer.add("user_us", total.user_us);
  answer.add("fetched", total.fetched).add("io", uring ? "io_uring" : "pread/pwrite");
}

}  // namespace

Answer write_files(const Words& words) {
  const Options options(words);
  std::atomic<bool> uring = false;
  const uint64_t slots = std::max<uint64_t>({options.depth, kPool / options.block, 1});
  const auto total = run_streams(options.streams, options.hold, [&](Stream& stream) {
    const Buffer memory =
        buffer(slots * options.block);  // outlives the ring, which may have operations under way in it
    Ring ring(options.depth);
    uring = ring.uring();
    const uint64_t start = options.start(stream.number);
    options.data.fill(memory.get(), start, slots * options.block);
    File file(options.of(stream.number), O_WRONLY | O_CREAT | (options.shared ? 0 : O_EXCL), options.direct);
    stream.begin();
    sequential(options, true, file.get(), start, ring, memory.get(), slots);
    if (options.fsync) must(fsync(file.get()), "fsync");
    file.shut();
  });
  Answer answer;
  add(answer, total, uring);
  return answer;
}

Answer read_files(const Words& words) {
  const Options options(words);
  std::atomic<bool> uring = false, right = true;
  const uint64_t slots = std::max<uint64_t>(options.depth, 1);
  const auto total = run_streams(options.streams, options.hold, [&](Stream& stream) {
    const Buffer memory =
        buffer(slots * options.block);  // outlives the ring, which may have operations under way in it
    Ring ring(options.depth);
    uring = ring.uring();
    File file(options.of(stream.number), O_RDONLY, options.direct);
    stream.begin();
    if (!sequential(options, false, file.get(), options.start(stream.number), ring, memory.get(), slots))
      right = false;
    file.shut();
  });
  Answer answer;
  add(answer, total, uring);
  answer.add("right", right.load());
  return answer;
}

// One block at a time at random places: the time of each.
Answer random_blocks(const Words& words) {
  const Options options(words);
  const bool write = words.number("write");
  const uint64_t count = words.number("count"), blocks = options.size / options.block;
  const Data fresh(words.number("seed") + 1);  // what overwrites must differ from what is there
  std::vector<std::vector<uint64_t>> times(static_cast<size_t>(options.streams));
  std::atomic<bool> right = true;
  const auto total = run_streams(options.streams, false, [&](Stream& stream) {
    auto& own = times[static_cast<size_t>(stream.number)];
    own.reserve(count);
    std::mt19937_64 random(words.number("seed") + static_cast<uint64_t>(stream.number));
    const Buffer memory = buffer(options.block);
    fresh.fill(memory.get(), 0, options.block);
    File file(options.of(stream.number), write ? O_WRONLY : O_RDONLY, options.direct);
    stream.begin();
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t offset = options.start(stream.number) + random() % blocks * options.block;
      if (write) fresh.restamp(memory.get(), offset, options.block);
      const uint64_t before = now_ns();
      const auto place = static_cast<off_t>(offset);
      const ssize_t moved = write ? pwrite(file.get(), memory.get(), options.block, place)
                                  : pread(file.get(), memory.get(), options.block, place);
      complete(write, file.get(), memory.get(), options.block, offset,
               moved < 0 ? -errno : static_cast<int32_t>(moved), i * options.block);
      if (write && options.fsync) must(fdatasync(file.get()), "fdatasync");
      own.push_back(now_ns() - before);
      if (!write && !options.data.stamped(memory.get(), offset, options.block)) right = false;
    }
    file.shut();
  });
  std::vector<uint64_t> all;
  for (const auto& own : times) all.insert(all.end(), own.begin(), own.end());
  Answer answer;
  add(answer, total, false);
  answer.list("times", all).add("right", right.load());
  return answer;
}

// Every byte, beside what was written; with overwritten=1 the stamps alone, each of either writer.
Answer verify_files(const Words& words) {
  const Options options(words);
  const bool overwritten = words.number("overwritten");
  const Data fresh(words.number("seed") + 1);
  const Buffer memory = buffer(options.block), wanted = buffer(options.block);
  uint64_t wrong = 0;
  for (int stream = 0; stream < options.streams; ++stream) {
    File file(options.of(stream), O_RDONLY, false);
    for (uint64_t offset = options.start(stream), end = offset + options.size; offset < end;
         offset += options.block) {
      const ssize_t moved = pread(file.get(), memory.get(), options.block, static_cast<off_t>(offset));
      complete(false, file.get(), memory.get(), options.block, offset,
               moved < 0 ? -errno : static_cast<int32_t>(moved), offset);
      if (overwritten) {
        for (uint64_t at = 0; at < options.block; at += kSector)
          wrong += !options.data.stamped(memory.get() + at, offset + at, kSector) &&
                   !fresh.stamped(memory.get() + at, offset + at, kSector);
        continue;
      }
      options.data.fill(wanted.get(), offset, options.block);
      wrong += std::memcmp(memory.get(), wanted.get(), options.block) != 0;
    }
    struct stat status;
    must(fstat(file.get(), &status), "fstat");
    wrong += static_cast<uint64_t>(status.st_size) !=
             options.size * (options.shared ? options.parts : uint64_t{1});
  }
  return Answer().add("wrong", wrong);
}

}  // namespace pw::storage
