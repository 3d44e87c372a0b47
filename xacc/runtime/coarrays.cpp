#include "xacc/runtime/coarrays.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "xacc/runtime/bounce.h"
#include "xacc/runtime/coarrays_on_gpus.h"
#include "xacc/runtime/collective.h"
#include "xacc/runtime/everywhere.h"
#include "xacc/runtime/failure.h"
#include "xacc/runtime/gpu.h"
#include "xacc/runtime/laid.h"
#include "xacc/runtime/present.h"
#include "xacc/runtime/program.h"

/// The memory of one coarray on all images.
struct pwx_coarray_state {
  pwx::Everywhere memory;
  std::unique_ptr<pwx::CoarrayOnGpus> on_gpus;  ///< of pwx_coarray_on_gpus
};

namespace pwx {
namespace {

using peerway::check;

std::vector<std::unique_ptr<pwx_coarray_state>>& coarrays() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_coarray_state>>;  // outlives atexit
  return all;
}

struct Ends {
  Laid there, here;
};

/// `section` of the coarray at `image` and `other` in this image's memory. Throws Failure where they do not
/// fit.
Ends sides_of(const pwx_coarray& x, long image, const pwx_triplet* section, const pwx_section& other) {
  if (x.state == nullptr) refuse("coarray ", x.name == nullptr ? "" : x.name, " is not allocated");
  if (image < 0 || image >= program().size())
    refuse("image ", image, " of coarray ", x.name, "; there are images 0 to ", program().size() - 1);
  if (other.array != nullptr)
    refuse("coarray ", x.name, " together with the distributed array ", other.array->name,
           " is not supported yet; copy by a local array");
  Ends sides{laid_out(x.ndims, x.size, x.element_bytes, section, x.name),
             laid_out(other.ndims, other.extent, other.element_bytes, other.dim, "a local array")};
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

/// One side of a transfer in registered memory.
struct Local {
  peerway::Region* region;
  Laid laid;
};

/// Where a transfer goes to or comes from: the coarray's memory, or its copy on the GPU.
peerway::Remote& remote_of(const pwx_coarray& x, long image, bool on_gpu) {
  if (!on_gpu) return x.state->memory.at(image);
  if (x.state->on_gpus == nullptr) refuse("coarray ", x.name, " was not made for transfers between GPUs");
  return x.state->on_gpus->remote(image, x.name);
}

/// Memory of this image's GPU, of which a section is.
Local local_on_gpu(const pwx_section& other, Laid laid) {
  const auto [region, offset] = region_on_gpu(other.base);
  laid.offset += static_cast<long>(offset);
  return {region, std::move(laid)};
}

void put(const pwx_coarray& to, long image, const pwx_triplet* section, const pwx_section& other,
         int places) {
  const Ends sides = sides_of(to, image, section, other);
  const bool scalar = sides.here.counts.empty() && !sides.there.counts.empty();
  if (!scalar) same_counts(to, sides);
  const size_t bytes = sides.there.elements() * to.element_bytes;
  if (bytes == 0) return;
  if (places != 0) wait_for_unqueued();
  if ((places & PWX_COARRAY_HERE) != 0) {
    const Local local = local_on_gpu(other, sides.here);
    for (const BlockPair& pair : blocks_between(sides.there, local.laid))
      check(program().context.put(remote_of(to, image, (places & PWX_COARRAY_THERE) != 0).block(pair.to),
                                  local.region->block(pair.from)));
    return check(program().context.flush(static_cast<int>(image)));  // kernels may write the source again
  }
  const auto span = bounce().take(bytes);
  std::byte* packed = bounce().at(span);
  const auto* from = static_cast<const std::byte*>(other.base);
  for (size_t copies = scalar ? sides.there.elements() : 1; copies-- > 0;)
    pack(packed + copies * to.element_bytes, from, sides.here);
  const bool to_gpu = (places & PWX_COARRAY_THERE) != 0;
  if (image == program().rank() && !to_gpu)
    return unpack(static_cast<std::byte*>(to.base), packed, sides.there);
  peerway::Remote& remote = remote_of(to, image, to_gpu);
  for (const BlockPair& pair : blocks_between(sides.there, packed_as(sides.there, span.offset)))
    check(program().context.put(remote.block(pair.to), {span.of, pair.from}));
}

void get(const pwx_section& other, const pwx_coarray& from, long image, const pwx_triplet* section,
         int places) {
  const Ends sides = sides_of(from, image, section, other);
  const bool scalar = sides.there.counts.empty() && !sides.here.counts.empty();
  if (!scalar) same_counts(from, sides);
  const size_t bytes = sides.there.elements() * from.element_bytes;
  if (bytes == 0) return;
  const bool from_gpu = (places & PWX_COARRAY_THERE) != 0;
  const auto complete = [&] { check(program().context.flush(static_cast<int>(image))); };
  const auto fetch = [&](pw_region* into, const Laid& laid) {
    peerway::Remote& remote = remote_of(from, image, from_gpu);
    complete();  // behind this image's own puts
    for (const BlockPair& pair : blocks_between(sides.there, laid))
      check(program().context.get({into, pair.from}, remote.block(pair.to)));
    complete();
  };
  if (places != 0) wait_for_unqueued();
  if ((places & PWX_COARRAY_HERE) != 0) {
    const Local local = local_on_gpu(other, sides.here);
    return fetch(local.region->get(), local.laid);
  }
  const auto span = bounce().take(bytes);
  std::byte* packed = bounce().at(span);
  if (image == program().rank() && !from_gpu)
    pack(packed, static_cast<const std::byte*>(from.base), sides.there);
  else
    fetch(span.of, packed_as(sides.there, span.offset));
  auto* to = static_cast<std::byte*>(other.base);
  if (!scalar) return unpack(to, packed, sides.here);
  each_element_of(sides.here, [&](long offset) { std::memcpy(to + offset, packed, from.element_bytes); });
}

/// Each of these images has come as far as this one.
void meet(const std::vector<int>& images) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (const int image : images) {
    if (image < 0 || image >= program().size())
      refuse("sync with image ", image, "; there are images 0 to ", program().size() - 1);
    if (image == program().rank()) continue;
    out.push_back({image, nullptr, 0});
    in.push_back({image, nullptr, 0});
  }
  complete_segment();
  program().mail.exchange(out, in);
}

int node_of(const pwx_ref& ref, const char* what) {
  const Set& set = program().sets.of(ref);
  if (set.size() != 1) refuse(what, " ", text_of(ref), ", which is ", set.size(), " nodes; name one");
  return set.ranks[0];
}

}  // namespace

peerway::Region* coarray_on_gpu(const void* address, size_t bytes, size_t& offset) {
  for (const auto& one : coarrays()) {
    const peerway::Region& memory = one->memory.here();
    const auto* const first = static_cast<const std::byte*>(memory.address());
    const auto* const at = static_cast<const std::byte*>(address);
    if (one->on_gpus == nullptr || at < first || at + bytes > first + memory.bytes()) continue;
    offset = static_cast<size_t>(at - first);
    return &one->on_gpus->memory();
  }
  return nullptr;
}

void complete_segment() {
  wait_for_unqueued();
  check(program().context.flush());
}

void free_coarrays() {
  coarrays().clear();
  bounce().free();
}

}  // namespace pwx

extern "C" {

void pwx_coarray_init(pwx_coarray* x, const char* name, size_t element_bytes, int ndims, const long* sizes,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::Program& program = pwx::program();
    x->name = name;
    x->element_bytes = element_bytes;
    x->ndims = ndims;
    size_t bytes = element_bytes;
    for (int d = 0; d < ndims; ++d) {
      if (sizes[d] < 1) pwx::refuse("coarray ", name, " has a size of ", sizes[d], "; it must be at least 1");
      x->size[d] = sizes[d];
      bytes *= static_cast<size_t>(sizes[d]);
    }
    auto state = std::unique_ptr<pwx_coarray_state>(new pwx_coarray_state{
        pwx::Everywhere(x->base == nullptr ? program.context.allocate(peerway::host, bytes)
                                           : program.context.register_memory(x->base, bytes)),
        nullptr});
    x->base = state->memory.here().address();
    x->state = state.get();
    pwx::coarrays().push_back(std::move(state));
  });
}

void pwx_coarray_on_gpus(pwx_coarray* x, const pwx_where* where) {
  pwx::guarded(where,
               [&] { x->state->on_gpus = std::make_unique<pwx::CoarrayOnGpus>(x->state->memory.here()); });
}

void pwx_coarray_put(const pwx_coarray* to, long image, const pwx_triplet* section, const pwx_section* other,
                     int places, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::put(*to, image, section, *other, places); });
}

void pwx_coarray_get(const pwx_section* other, const pwx_coarray* from, long image,
                     const pwx_triplet* section, int places, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::get(*other, *from, image, section, places); });
}

void pwx_sync_memory(const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::complete_segment(); });
}

void pwx_sync_all(const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::complete_segment();
    pwx::barrier(pwx::program(), pwx::program().all());
  });
}

void pwx_sync_image(long image, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::meet({static_cast<int>(image)}); });
}

void pwx_sync_images(long count, const int* images, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::meet({images, images + count}); });
}

void pwx_post(const pwx_ref* node, long tag, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::wait_for_unqueued();
    pwx::program().mail.post(pwx::node_of(*node, "post to"), static_cast<uint64_t>(tag));
  });
}

void pwx_wait(const pwx_ref* node, int any_tag, long tag, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const int rank = node == nullptr ? -1 : pwx::node_of(*node, "wait for");
    pwx::program().mail.wait(
        rank, any_tag != 0 ? std::nullopt : std::optional<uint64_t>(static_cast<uint64_t>(tag)));
  });
}

}  // extern "C"
