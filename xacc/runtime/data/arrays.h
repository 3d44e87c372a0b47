// The memory of distributed arrays, and which array an address belongs to.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peerway/peerway.hpp"
#include "xacc/runtime/data/key_table.h"
#include "xacc/runtime/mapping/mapping.h"
#include "xacc/runtime/program/sets.h"

namespace pwx {

/// The state of the halos of one copy of an array, and which writes it had seen when it began.
struct Reflected {
  bool done = false;  ///< anything yet
  std::array<pwx_width, PWX_MAX_DIMS> widths{};
  bool orthogonal = false;
  uint64_t copy = 0;  ///< id of the copy on the GPU; 0: the host's memory
  uint64_t writes = 0;
};

/// Memory of the GPU of which an array had a copy that is present no longer, and the number of that copy.
struct SpareCopy {
  std::optional<peerway::Region> region{};
  uint64_t id = 0;
};

}  // namespace pwx

/// One array that is allocated.
struct pwx_array_state {
  uint64_t id;      ///< never given twice
  pwx_array shape;  ///< as it was allocated
  peerway::Region memory;
  uint64_t bytes;  ///< of the array; the region may be larger
  int watch = 0;   ///< the largest of pwx_array_watch
  uint64_t writes = 0;
  std::array<pwx::Reflected, 2> reflected{};  ///< of the host's memory, of a copy on the GPU
  pwx::CommonId common_id;                    ///< for gmove in and out
  const pwx::Set* executing = nullptr;        ///< the set that was last compared with the array's nodes
  bool alike = false;                         ///< it is these nodes
  pwx_template on{};  ///< what `shape` is aligned with, whatever becomes of the program's
  pwx_nodes nodes{};
  std::array<std::vector<long>, PWX_MAX_DIMS> starts{};  ///< of its gblock dimensions
  bool local = false;  ///< of pwx_array_enter: kept when its function returns
  std::string site{};  ///< where that was
  uint64_t life = 0;   ///< how often it was taken into use
  pwx::SpareCopy spare{};
};

namespace pwx {

/// Throws Failure unless the array is allocated. `action` needs it: "reflect".
const pwx_array_state& allocated(const pwx_array& a, const char* action);

/// The array whose memory begins at an address, or null.
pwx_array_state* array_at(const void* memory);

/// Counts what may have written an array.
uint64_t writes_of(const pwx_array_state& state);

/// How many arrays have been freed: what was bound before may be stale.
uint64_t freed();

/// Allocates an array that is described.
void allocate(pwx_array& a);

/// Puts the memory of a described array into use, which is zeros.
void take_into_use(pwx_array& a, std::unique_ptr<pwx_array_state> state);
/// Gives the memory of an array that nobody uses any more.
std::unique_ptr<pwx_array_state> take_out_of_use(pwx_array& a);

/// Calls by which layers above end what they hold of an array, such as plans. Each gets the id.
struct ArrayUsers {
  void (*array_left)(uint64_t array);  ///< a function returns, and the array's memory is kept
  void (*array_freed)(uint64_t array);
  void (*copy_freed)(uint64_t copy);  ///< the copy on the GPU
};
void notify_array_users(const ArrayUsers& of_layers_above);
const ArrayUsers& array_users();

/// Before the context ends.
void free_arrays();

}  // namespace pwx
