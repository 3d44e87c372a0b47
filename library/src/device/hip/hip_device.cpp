#include "device/hip/hip_device.h"

#include "base/format.h"
#include "base/status.h"

namespace pw::hip {
namespace {

class LargeBar final : public CpuMapping {
 public:
  LargeBar(std::byte* address, volatile uint32_t* flush_word) : flush_word_(flush_word) {
    address_ = address;
  }

  // Between the PCIe bus and a GPU's memory lies a cache, which the word empties. Reading the word back waits
  // until that is done.
  void store(std::byte* to, const std::byte* from, uint64_t bytes) override {
    CpuMapping::store(to, from, bytes);
    if (flush_word_ == nullptr) return;
    *flush_word_ = 1;
    static_cast<void>(*flush_word_);
  }

 private:
  volatile uint32_t* flush_word_;  ///< null: the GPU has no such cache
};

}  // namespace

std::unique_ptr<CpuMapping> HipDevice::map_for_cpu(const Allocation& allocation) {
  if (!facts_.large_bar)
    throw Error(
        PW_UNAVAILABLE,
        format("the CPU does not reach the memory of {}: it has no large BAR; switch on \"Above 4G "
               "decoding\" and \"Resizable BAR\" in the firmware (rocminfo shows pools that all agents "
               "may access)",
               to_string(id())));
  return std::make_unique<LargeBar>(allocation.base, facts_.flush_word);
}

}  // namespace pw::hip
