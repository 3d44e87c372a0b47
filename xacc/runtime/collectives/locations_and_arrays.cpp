// Reductions of a value with its location, and of the part of an array that a rank owns.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/program/collective.h"

namespace pwx {
namespace {

/// Reduces a value together with its location variables, in one message.
void reduce_location(const Set& set, Replaces replaces, void* value, size_t value_bytes, int locations,
                     void* const* location, const size_t* location_bytes) {
  const auto each = [&](auto&& move) {
    size_t at = value_bytes;
    for (int k = 0; k < locations; at += location_bytes[k++]) move(at, location[k], location_bytes[k]);
    return at;
  };
  std::vector<std::byte> mine(each([](size_t, void*, size_t) {})), theirs(mine.size());
  std::memcpy(mine.data(), value, value_bytes);
  each([&](size_t at, const void* from, size_t bytes) { std::memcpy(mine.data() + at, from, bytes); });
  Mail& mail = program().mail;
  const int me = set.index;
  const auto rank = [&](int place) { return set.ranks[static_cast<size_t>(place)]; };
  // Rank k receives from rank k + distance, so that values of earlier places stay the first operand.
  for (int distance = 1; distance < set.size(); distance *= 2) {
    if ((me & distance) != 0) {
      mail.send(rank(me - distance), mine.data(), mine.size());
      break;
    }
    if (me + distance >= set.size()) continue;
    mail.receive(rank(me + distance), theirs.data(), theirs.size());
    if (replaces(mine.data(), theirs.data())) mine = theirs;
  }
  broadcast(program(), set, 0, mine.data(), mine.size());
  std::memcpy(value, mine.data(), value_bytes);
  each([&](size_t at, void* to, size_t bytes) { std::memcpy(to, mine.data() + at, bytes); });
}

/// Copies the elements that this rank owns into one contiguous piece, or back.
void copy_owned(const pwx_array& a, std::byte* packed, bool pack) {
  const Strides strides = strides_of(a.ndims, a.ld, a.element_bytes);
  std::array<std::vector<long>, PWX_MAX_DIMS> offsets;
  const auto ndims = static_cast<size_t>(a.ndims);
  for (size_t d = 0; d < ndims; ++d) {
    const int dim = static_cast<int>(d);
    const pwx_template_dim* t = template_dim(a, dim);
    const int part = t == nullptr ? 0 : t->at;
    const Placed placed = place(a, dim, part);
    for (const Range& range : owned_subscripts(a, dim, part))
      for (long i = range.first; i <= range.last; ++i)
        offsets[d].push_back(position(a, dim, placed, i) * strides[d]);
    if (offsets[d].empty()) return;
  }
  auto* memory = static_cast<std::byte*>(a.state->memory.address());
  std::array<size_t, PWX_MAX_DIMS> at{};
  for (;;) {
    long offset = 0;
    for (size_t d = 0; d < ndims; ++d) offset += offsets[d][at[d]];
    std::byte* element = memory + offset;
    std::memcpy(pack ? packed : element, pack ? element : packed, a.element_bytes);
    packed += a.element_bytes;
    size_t d = ndims;
    while (d > 0 && ++at[d - 1] == offsets[d - 1].size()) at[--d] = 0;
    if (d == 0) return;
  }
}

uint64_t owned_elements(const pwx_array& a) {
  uint64_t count = 1;
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_template_dim* t = template_dim(a, d);
    uint64_t here = 0;
    for (const Range& range : owned_subscripts(a, d, t == nullptr ? 0 : t->at))
      here += static_cast<uint64_t>(range.count());
    count *= here;
  }
  return count;
}

}  // namespace

}  // namespace pwx

extern "C" {

void pwx_reduce_location(const pwx_ref* on, pwx_op op, pwx_type type, void* value, int locations,
                         void* const* location, const size_t* location_bytes, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const pwx::Set& set = pwx::program().set_of(on);
    const pwx::Replaces replaces = pwx::replaces_of(op, type);
    if (set.index >= 0)
      pwx::reduce_location(set, replaces, value, pwx::size_of(type), locations, location, location_bytes);
  });
}

void pwx_reduce_array(const pwx_ref* on, pwx_op op, pwx_type type, pwx_array* a, const pwx_where* where) {
  pwx_written(a);
  pwx::guarded(where, [&] {
    pwx::allocated(*a, "reduction");
    const pwx::Set& set = pwx::program().set_of(on);
    if (set.index < 0 || a->on->nodes->member == 0) return;
    const uint64_t count = pwx::owned_elements(*a);
    std::vector<std::byte> packed(count * a->element_bytes);
    pwx::copy_owned(*a, packed.data(), true);
    pwx::reduce(pwx::program(), set, pwx::combine_of(op, type), packed.data(), count, a->element_bytes);
    pwx::copy_owned(*a, packed.data(), false);
  });
}

}  // extern "C"
