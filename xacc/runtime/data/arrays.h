// The memory of distributed arrays, and the array at an address.
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

/// The state of an array's halos in one memory, and the writes counted when the last reflect began.
struct Reflected {
  bool done = false;  ///< whether anything was reflected yet
  std::array<pwx_width, PWX_MAX_DIMS> widths{};
  bool orthogonal = false;
  uint64_t copy = 0;  ///< id of the copy on the GPU; 0: host memory
  uint64_t writes = 0;
};

/// GPU memory of an array's copy that is no longer present, with the id of that copy.
struct SpareCopy {
  std::optional<peerway::Region> region{};
  uint64_t id = 0;
};

}  // namespace pwx

/// An allocated array.
struct pwx_array_state {
  uint64_t id;      ///< never reused
  pwx_array shape;  ///< as it was allocated
  peerway::Region memory;
  uint64_t bytes;  ///< of the array; the region may be larger
  int watch = 0;   ///< the largest value of pwx_array_watch
  uint64_t writes = 0;
  std::array<pwx::Reflected, 2> reflected{};  ///< for host memory, and for a copy on the GPU
  pwx::CommonId common_id;                    ///< for gmove in and out
  const pwx::Set* executing = nullptr;        ///< the set that was last compared with the array's nodes
  bool alike = false;                         ///< whether that set is these nodes
  pwx_template on{};  ///< a copy of the template of `shape`, which outlives the program's
  pwx_nodes nodes{};
  std::array<std::vector<long>, PWX_MAX_DIMS> starts{};  ///< of gblock dimensions
  bool local = false;  ///< made by pwx_array_enter: kept when its function returns
  std::string site{};  ///< where that was
  uint64_t life = 0;   ///< how often it was taken into use
  pwx::SpareCopy spare{};
};

namespace pwx {

/// Returns the array's state. Throws Failure unless it is allocated; `action` names what needs it: "reflect".
const pwx_array_state& allocated(const pwx_array& a, const char* action);

/// The array whose memory begins at an address, or null.
pwx_array_state* array_at(const void* memory);

/// The number of writes that may have changed an array so far.
uint64_t writes_of(const pwx_array_state& state);

/// The number of arrays freed so far. If it changed, earlier bindings may be stale.
uint64_t freed();

/// Allocates an array that is described.
void allocate(pwx_array& a);

/// Puts memory, set to zero, into use for a described array.
void take_into_use(pwx_array& a, std::unique_ptr<pwx_array_state> state);
/// Takes the memory of an array out of use, and returns it.
std::unique_ptr<pwx_array_state> take_out_of_use(pwx_array& a);

/// Functions that an upper layer registers to release what it holds of an array, such as plans. Each gets the
/// id.
struct ArrayUser {
  void (*array_left)(uint64_t array);  ///< a function returns; the array's memory is kept
  void (*array_freed)(uint64_t array);
  void (*copy_freed)(uint64_t copy);  ///< a copy on the GPU, of an array or of other memory
};
void notify_array_user(const ArrayUser& of_layer_above);
/// Calls one of these functions of all layers.
void tell_array_users(void (*ArrayUser::*event)(uint64_t), uint64_t id);

/// Call it before the context ends.
void free_arrays();

}  // namespace pwx
