// The table of copies on the GPU: which ranges of host memory have a copy, and who still needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/cuda/driver.h"
#include "peerway/peerway.hpp"
#include "peerway/xacc/acc.h"
#include "xacc/runtime/mapping/rows.h"

namespace pwx {

/// A range of host memory and its copy.
struct Present {
  std::byte* host;
  uint64_t bytes;
  std::byte* device;
  uint64_t structured = 0;  ///< data regions that it is in
  uint64_t dynamic = 0;     ///< enter data without exit data so far
  bool mapped = false;      ///< by acc_map_data: the copy is the program's own memory
  bool coarray = false;     ///< the copy belongs to a coarray, which keeps it
  bool outside = false;     ///< the copy belongs to another run-time library, which does not know our streams
  std::shared_ptr<peerway::Region>
      block{};  ///< the memory that it shares with other copies (CommonAllocation)
  std::optional<peerway::Region> region{};   ///< of a distributed array, so that plans reach it
  std::optional<peerway::Region> reached{};  ///< of other memory, so that coarray transfers reach it
  uint64_t id = 0;                           ///< never reused
  uint64_t published = 0;                    ///< its id in data/key_table.h; 0: none
};

/// The entry that contains the whole range, or null. Throws Failure if only a part of the range is present.
/// With `bytes` 0, the entry that contains the address.
Present* find_present(const void* address, uint64_t bytes, const char* name);
/// The entry of a distributed array, or null.
Present* find_present(const pwx_array& a);
/// The entry of a distributed array. Throws Failure if it is not present; `action` names what needs it:
/// "reflect".
Present& present(const pwx_array& a, const char* action);

/// The registered memory that contains a GPU address, and the offset in it. Throws Failure if nothing is
/// present there.
struct OnGpu {
  peerway::Region* region;
  size_t offset;
};
OnGpu region_on_gpu(const void* device);

/// The host address of the data at a GPU address, or null.
void* host_of(const void* device);

/// Memory for copies that one directive begins. Other ranks map it once, which takes a GPU's driver long. It
/// lives as long as one of the copies.
class CommonAllocation {
 public:
  CommonAllocation(int count, const pwx_data* data);
  [[nodiscard]] const std::shared_ptr<peerway::Region>& memory() const { return memory_; }
  /// The place of an array's copy in the memory, or null.
  [[nodiscard]] const size_t* offset_of(const pwx_array& a) const;

 private:
  std::map<const pwx_array_state*, size_t> offsets_;
  std::shared_ptr<peerway::Region> memory_;
};

Present& make_present(const pwx_data& data, const CommonAllocation& common);
void map_present(void* host, void* device, uint64_t bytes);
/// Registers the copy of an array that another run-time library has at an address.
void present_outside(const pwx_array& a, void* device);
void remove_present(Present& entry);

/// The address on the GPU of what is at a host address of the entry.
inline pw::cuda::CUdeviceptr address_on_gpu(const Present& entry, const void* address) {
  return reinterpret_cast<pw::cuda::CUdeviceptr>(entry.device +
                                                 (static_cast<const std::byte*>(address) - entry.host));
}

void clear_on_device(const Present& entry, long queue);
void copy_to_device(const Present& entry, const void* address, uint64_t bytes, long queue);
void copy_to_host(const Present& entry, void* address, uint64_t bytes, long queue);

/// Copies rows of the host memory at `base`.
void copy_rows(const Present& entry, std::byte* base, const std::vector<Row>& rows, bool to_device,
               long queue);

/// Removes the copy of a distributed array whose memory is freed.
void forget_present(const void* address);
/// Call it before the context ends.
void free_present();

}  // namespace pwx
