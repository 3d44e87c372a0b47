#include "device/cuda/dmabuf.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/status.h"
#include "device/cuda/mapper.h"

namespace pw::cuda {
namespace {

constexpr int kNotSupported = 524;  // ENOTSUPP, which the kernel returns but no header of user space defines

class DmabufMapping final : public CpuMapping {
 public:
  DmabufMapping(void* start, uint64_t bytes, uint64_t offset) : start_(start), bytes_(bytes) {
    address_ = static_cast<std::byte*>(start) + offset;
  }
  ~DmabufMapping() override { munmap(start_, bytes_); }

 private:
  void* start_;
  uint64_t bytes_;
};

class DmabufMapper final : public CpuMapper {
 public:
  [[nodiscard]] std::string_view name() const override { return "dma-buf"; }

  std::unique_ptr<CpuMapping> map(Device& device, const Allocation& allocation) override {
    const Descriptor descriptor(device.dma_buf(allocation));
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    // The dma-buf begins at a page boundary.
    const uint64_t offset = reinterpret_cast<uint64_t>(allocation.base) % page;
    const uint64_t bytes = (offset + allocation.bytes + page - 1) / page * page;
    void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
    if (start == MAP_FAILED) throw Error(PW_UNAVAILABLE, "" + why_no_dmabuf_map(errno));
    return std::make_unique<DmabufMapping>(start, bytes, offset);
  }
};

}  // namespace

std::string why_no_dmabuf_map(int error) {
  if (error == kNotSupported || error == ENOTSUP || error == ENODEV)
    return format(
        "the driver refuses to map GPU memory for the CPU (errno {}); install gdrdrv, or a driver for CUDA "
        "13.3 or newer",
        error);
  if (error == ENOMEM)
    return format("no room to map GPU memory for the CPU{}; the GPU's BAR1 may be full (nvidia-smi -q)",
                  errno_text(error));
  return format("mapping GPU memory for the CPU failed{}", errno_text(error));
}

std::unique_ptr<CpuMapper> make_dmabuf_mapper() { return std::make_unique<DmabufMapper>(); }

}  // namespace pw::cuda
