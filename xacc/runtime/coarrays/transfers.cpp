// put and get of sections of coarrays.
#include <cstring>
#include <utility>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/coarrays/synchronisation.h"
#include "xacc/runtime/data/coarray_memory.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/mapping/sections.h"
#include "xacc/runtime/program/bounce_buffer.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

using peerway::check;

struct Ends {
  SectionLayout there, here;
};

/// The rank that has an image of a coarray. Throws Failure if there is no such image, or no memory.
int rank_of(const pwx_coarray& x, long image) {
  if (x.state == nullptr) refuse("coarray ", x.name == nullptr ? "" : x.name, " is not allocated");
  if (x.on == nullptr) return rank_of_image(image, text("image ", image, " of coarray ", x.name));
  if (image < 0 || image >= x.on->total)
    refuse("image ", image, " of coarray ", x.name, "; there are images 0 to ", x.on->total - 1);
  return x.on->ranks[image];
}

/// The layouts of `section` of the coarray and of `other` in this image's memory. Throws Failure if they do
/// not fit.
Ends sides_of(const pwx_coarray& x, const pwx_triplet* section, const pwx_section& other) {
  if (other.array != nullptr)
    refuse("coarray ", x.name, " together with the distributed array ", other.array->name,
           " is not supported yet; copy by a local array");
  Ends sides{layout_of(x.ndims, x.size, x.element_bytes, section, x.name),
             layout_of(other.ndims, other.extent, other.element_bytes, other.dim, "a local array")};
  if (sides.here.element_bytes != x.element_bytes)
    refuse("elements of ", x.element_bytes, " bytes in coarray ", x.name, " and of ", other.element_bytes,
           " on the other side; both must have one type");
  return sides;
}

void same_counts(const pwx_coarray& x, const Ends& sides) {
  if (sides.there.counts != sides.here.counts)
    refuse(sides.there.elements(), " elements of coarray ", x.name, " and ", sides.here.elements(),
           " on the other side; the sections must have the same dimensions and lengths");
}

/// A section in the memory of the whole coarray, of which a dummy argument may be a part.
SectionLayout in_whole(const pwx_coarray& x, SectionLayout section) {
  const auto* const first = static_cast<const std::byte*>(x.state->memory.here().address());
  section.offset += static_cast<const std::byte*>(x.base) - first;
  return section;
}

/// The local side of a transfer, in registered memory.
struct Local {
  peerway::Region* region;
  SectionLayout layout;
};

/// The remote side of a transfer: the coarray's memory, or its copy on the GPU.
peerway::Remote& remote_of(const pwx_coarray& x, int rank, bool on_gpu) {
  if (!on_gpu) return x.state->memory.at(rank);
  if (x.state->on_gpus == nullptr) refuse("coarray ", x.name, " was not made for transfers between GPUs");
  return x.state->on_gpus->remote(rank, x.name);
}

/// The registered memory of this image's GPU that contains a section.
Local local_on_gpu(const pwx_section& other, SectionLayout layout) {
  const auto [region, offset] = region_on_gpu(other.base);
  layout.offset += static_cast<long>(offset);
  return {region, std::move(layout)};
}

void put(const pwx_coarray& to, long image, const pwx_triplet* section, const pwx_section& other,
         int places) {
  const int rank = rank_of(to, image);
  const Ends sides = sides_of(to, section, other);
  const bool scalar = sides.here.counts.empty() && !sides.there.counts.empty();
  if (!scalar) same_counts(to, sides);
  const size_t bytes = sides.there.elements() * to.element_bytes;
  if (bytes == 0) return;
  if (places != 0) wait_for_unqueued();
  if ((places & PWX_COARRAY_HERE) != 0) {
    const Local local = local_on_gpu(other, sides.here);
    for (const BlockPair& pair : blocks_between(in_whole(to, sides.there), local.layout))
      check(program().context.put(remote_of(to, rank, (places & PWX_COARRAY_THERE) != 0).block(pair.to),
                                  local.region->block(pair.from)));
    // kernels may overwrite the source after this
    return check(program().context.flush(rank));
  }
  const auto span = bounce().take(bytes);
  std::byte* packed = bounce().at(span);
  const auto* from = static_cast<const std::byte*>(other.base);
  for (size_t copies = scalar ? sides.there.elements() : 1; copies-- > 0;)
    pack(packed + copies * to.element_bytes, from, sides.here);
  const bool to_gpu = (places & PWX_COARRAY_THERE) != 0;
  if (rank == program().rank() && !to_gpu)
    return unpack(static_cast<std::byte*>(to.base), packed, sides.there);
  peerway::Remote& remote = remote_of(to, rank, to_gpu);
  for (const BlockPair& pair : blocks_between(in_whole(to, sides.there), packed_as(sides.there, span.offset)))
    check(program().context.put(remote.block(pair.to), {span.of, pair.from}));
}

void get(const pwx_section& other, const pwx_coarray& from, long image, const pwx_triplet* section,
         int places) {
  const int rank = rank_of(from, image);
  const Ends sides = sides_of(from, section, other);
  const bool scalar = sides.there.counts.empty() && !sides.here.counts.empty();
  if (!scalar) same_counts(from, sides);
  const size_t bytes = sides.there.elements() * from.element_bytes;
  if (bytes == 0) return;
  const bool from_gpu = (places & PWX_COARRAY_THERE) != 0;
  const auto complete = [&] { check(program().context.flush(rank)); };
  const auto fetch = [&](pw_region* into, const SectionLayout& layout) {
    peerway::Remote& remote = remote_of(from, rank, from_gpu);
    complete();  // after this image's own puts
    for (const BlockPair& pair : blocks_between(in_whole(from, sides.there), layout))
      check(program().context.get({into, pair.from}, remote.block(pair.to)));
    complete();
  };
  if (places != 0) wait_for_unqueued();
  if ((places & PWX_COARRAY_HERE) != 0) {
    const Local local = local_on_gpu(other, sides.here);
    return fetch(local.region->get(), local.layout);
  }
  const auto span = bounce().take(bytes);
  std::byte* packed = bounce().at(span);
  if (rank == program().rank() && !from_gpu)
    pack(packed, static_cast<const std::byte*>(from.base), sides.there);
  else
    fetch(span.of, packed_as(sides.there, span.offset));
  auto* to = static_cast<std::byte*>(other.base);
  if (!scalar) return unpack(to, packed, sides.here);
  each_element_of(sides.here, [&](long offset) { std::memcpy(to + offset, packed, from.element_bytes); });
}

}  // namespace
}  // namespace pwx

extern "C" {

void pwx_coarray_put(const pwx_coarray* to, long image, const pwx_triplet* section, const pwx_section* other,
                     int places, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::put(*to, image, section, *other, places); });
}

void pwx_coarray_get(const pwx_section* other, const pwx_coarray* from, long image,
                     const pwx_triplet* section, int places, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::get(*other, *from, image, section, places); });
}

}  // extern "C"
