// The plans of reflects. A plan is prepared once for the same arrays and widths.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peerway/peerway.hpp"
#include "xacc/runtime/gpu/sequences.h"
#include "xacc/runtime/mapping/halo_boxes.h"
#include "xacc/runtime/mapping/mapping.h"
#include "xacc/runtime/program/sets.h"

namespace pwx {

/// One array of a reflect, and the widths of its shadow to refresh.
struct ReflectPart {
  pwx_array* array;
  Widths widths;
};

struct ReflectRequest {
  std::vector<ReflectPart> parts;
  int flags;

  [[nodiscard]] bool orthogonal() const { return (flags & PWX_REFLECT_ORTHOGONAL) != 0; }
  /// Whether it reflects the copies on the GPU.
  [[nodiscard]] bool acc() const;
};

/// A plan, and what it was made for.
struct Reflect {
  std::vector<uint64_t> arrays{};          ///< ids
  std::vector<pwx_array_state*> states{};  ///< of the arrays; valid until the plan is stale
  std::vector<uint64_t> copies{};          ///< ids of the copies on the GPU; empty: host memory
  std::vector<MemoryOnGpu> memory{};       ///< of these copies
  bool outside = false;  ///< a copy belongs to another run-time library, so that the host waits for the halos
  std::vector<Widths> widths{};  ///< of each array
  bool orthogonal = false;
  const Set* set = nullptr;
  std::string names{};
  std::optional<peerway::Plan> plan{};  ///< none if this rank has nothing to transfer
  bool shared = false;  ///< by directives for the same arrays, none of which leaves it under way
  bool under_way = false;
  std::vector<uint64_t> writes{};  ///< the writes counted for each array when it began
  bool stale = false;              ///< an array was freed
  long number = 0;                 ///< its number among the plans of its set, equal on all ranks
  std::vector<uint64_t> lives{};   ///< of the arrays, when the ranks last agreed to use the plan
};

/// Prepares a plan among the ranks of a set; the arrays must be allocated.
std::shared_ptr<Reflect> make_reflect(const ReflectRequest& request, const Set& set);
bool is_for(const Reflect& entry, const ReflectRequest& request, const Set& set);
bool same_widths(const pwx_array& a, const Widths& a_widths, const Widths& other);

/// Call it before the context ends.
void free_halos();

}  // namespace pwx
