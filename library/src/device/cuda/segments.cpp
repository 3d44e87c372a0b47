#include "device/cuda/segments.h"

#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/shared_memory.h"
#include "base/status.h"
#include "device/cuda/pointer.h"
#include "device/cuda/share.h"

namespace pw::cuda {
namespace {

/// A line of the table.
struct Segment {
  int64_t descriptor;  ///< in the owner's process
  uint64_t bytes;
};

// The descriptors of a table that is not complete are closed with it.
class Segments {
 public:
  Segments() = default;
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;
  ~Segments() {
    for (const Segment& segment : all_) close(static_cast<int>(segment.descriptor));
  }
  void add(int descriptor, uint64_t bytes) { all_.push_back({descriptor, bytes}); }

  /// Writes the table to new shared memory, whose descriptor it returns. From then on that owns the others.
  int release() {
    const size_t bytes = all_.size() * sizeof(Segment);
    Descriptor table = make_shared_memory("peerway segments", bytes, bytes);
    if (!table || pwrite(table.get(), all_.data(), bytes, 0) != static_cast<ssize_t>(bytes))
      throw Error(PW_SYSTEM, "cannot make the table of a region's segments" + why_no_shared_memory(errno));
    all_.clear();
    return table.release();
  }

 private:
  std::vector<Segment> all_;
};

std::vector<Segment> read_segments(int table) {
  const off_t bytes = lseek(table, 0, SEEK_END);
  std::vector<Segment> segments(bytes <= 0 ? 0 : static_cast<size_t>(bytes) / sizeof(Segment));
  const size_t wanted = segments.size() * sizeof(Segment);
  if (pread(table, segments.data(), wanted, 0) != static_cast<ssize_t>(wanted)) segments.clear();
  return segments;
}

}  // namespace

int export_segments(const Driver& driver, const Allocation& allocation) {
  const auto base = reinterpret_cast<uint64_t>(allocation.base);
  Segments segments;
  for (const PointerFacts& mapping : describe_range(driver, base, allocation.bytes))
    segments.add(vmm_descriptor(driver, mapping.mapping_start, mapping.mapping_bytes), mapping.mapping_bytes);
  return segments.release();
}

void close_segments(int table) noexcept {
  for (const Segment& segment : read_segments(table)) close(static_cast<int>(segment.descriptor));
  close(table);
}

std::vector<VmmPart> import_segments(const Driver& driver, const Export& exported) {
  const Descriptor table(descriptor_of(exported.process, exported.descriptor));
  std::vector<VmmPart> parts;
  try {
    uint64_t bytes = 0;
    for (const Segment& segment : read_segments(table.get())) {
      const Descriptor own(descriptor_of(exported.process, static_cast<int>(segment.descriptor)));
      parts.push_back({vmm_handle(driver, own.get(), exported), segment.bytes});
      bytes += segment.bytes;
    }
    if (bytes != exported.bytes)
      throw Error(PW_STALE_KEY, format("the segments of process {} have {} bytes now; its key is of {} bytes",
                                       exported.process, bytes, exported.bytes));
  } catch (...) {
    for (const VmmPart& part : parts) driver.cuMemRelease(part.handle);
    throw;
  }
  return parts;
}

}  // namespace pw::cuda
