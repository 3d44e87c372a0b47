// The table of copies on the GPU: which part of the host's memory has a copy there, and who needs it still.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "peerway/peerway.hpp"
#include "peerway/xacc/acc.h"
#include "xacc/runtime/mapping/rows.h"

namespace pwx {

/// A span of host memory and its copy.
struct Present {
  std::byte* host;
  uint64_t bytes;
  std::byte* device;
  uint64_t structured = 0;                   ///< regions of the text that it is in
  uint64_t dynamic = 0;                      ///< enter data without their exit data
  bool mapped = false;                       ///< by acc_map_data: the copy is the program's own memory
  bool coarray = false;                      ///< the copy is the coarray's, which keeps it
  bool outside = false;                      ///< it is another run time's, which does not know our streams
  std::optional<peerway::Region> region{};   ///< of a distributed array, so that plans reach it
  std::optional<peerway::Region> reached{};  ///< of other memory, so that coarrays' transfers reach it
  uint64_t id = 0;                           ///< never given twice
  uint64_t published = 0;                    ///< its id in data/key_table.h; 0: none
};

/// The one that holds all of the span; null where there is none. Throws Failure where it holds a part.
/// `bytes` 0: the one that holds the address.
Present* find_present(const void* address, uint64_t bytes, const char* name);
/// The one of a distributed array, or null.
Present* find_present(const pwx_array& a);
/// Throws Failure where the array is not present; `action` needs it: "reflect".
Present& present(const pwx_array& a, const char* action);

/// The registered memory that an address of the GPU is in, and where. Throws Failure where nothing is present
/// there.
struct OnGpu {
  peerway::Region* region;
  size_t offset;
};
OnGpu region_on_gpu(const void* device);

/// The host's address of what the GPU has there, or null.
void* host_of(const void* device);

Present& make_present(const pwx_data& data);
void map_present(void* host, void* device, uint64_t bytes);
/// The copy of an array that another run time has at an address.
void present_outside(const pwx_array& a, void* device);
void remove_present(Present& entry);

void clear_on_device(const Present& entry, long queue);
void copy_to_device(const Present& entry, const void* address, uint64_t bytes, long queue);
void copy_to_host(const Present& entry, void* address, uint64_t bytes, long queue);

/// Rows of the host's memory at `base`.
void copy_rows(const Present& entry, std::byte* base, const std::vector<Row>& rows, bool to_device,
               long queue);

/// The memory of a distributed array is freed.
void forget_present(const void* address);
/// Before the context ends.
void free_present();

}  // namespace pwx
