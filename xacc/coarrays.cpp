#include "xacc/coarrays.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "xacc/collective.h"
#include "xacc/failure.h"
#include "xacc/mapping.h"
#include "xacc/pieces.h"
#include "xacc/program.h"

/// The memory of one coarray on all images.
struct pwx_coarray_state {
  peerway::Region memory;
  std::vector<peerway::Key> keys;
  std::vector<std::optional<peerway::Remote>> remotes;

  peerway::Remote& remote(long image) {
    auto& there = remotes[static_cast<size_t>(image)];
    if (!there) there = pwx::program().context.import(keys[static_cast<size_t>(image)]);
    return *there;
  }
};

namespace pwx {
namespace {

using peerway::check;

std::vector<std::unique_ptr<pwx_coarray_state>>& coarrays() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_coarray_state>>;  // outlives atexit
  return all;
}

/// Room in registered memory for what is on its way, between program memory and other images.
class Bounce {
 public:
  /// What was taken before stays until it is flushed, which this does where there is no room left.
  peerway::Span<pw_region> take(size_t bytes) {
    if (!memory_ || used_ + bytes > memory_->bytes()) {
      if (memory_) check(program().context.flush());
      used_ = 0;
      if (!memory_ || bytes > memory_->bytes())
        memory_ = program().context.allocate(peerway::host, std::max<size_t>(bytes, size_t{1} << 20));
    }
    const size_t at = used_;
    used_ += (bytes + 63) / 64 * 64;
    return memory_->span(at, bytes);
  }
  [[nodiscard]] std::byte* at(const peerway::Span<pw_region>& span) const {
    return static_cast<std::byte*>(memory_->address()) + span.offset;
  }
  void free() { memory_.reset(); }

 private:
  std::optional<peerway::Region> memory_;
  size_t used_ = 0;
};
Bounce& bounce() {
  static auto& one = *new Bounce;  // outlives atexit
  return one;
}

/// A section in memory: its free dimensions, and where its first element lies.
struct Laid {
  std::vector<long> counts, strides;
  long offset = 0;
  size_t element_bytes = 0;

  [[nodiscard]] size_t elements() const {
    size_t all = 1;
    for (const long count : counts) all *= static_cast<size_t>(count);
    return all;
  }
};

Laid laid_out(int ndims, const long* extents, size_t element_bytes, const pwx_triplet* dims,
              const char* name) {
  Laid laid;
  laid.element_bytes = element_bytes;
  const Strides strides = strides_of(ndims, extents, element_bytes);
  for (int d = 0; d < ndims; ++d) {
    const pwx_triplet& t = dims[d];
    const bool index = t.is_index != 0;
    if (!index && t.count == 0) {
      laid.counts.push_back(0);
      laid.strides.push_back(0);
      continue;
    }
    const long last = index ? t.first : t.first + (t.count - 1) * t.step;
    if (std::min(t.first, last) < 0 || std::max(t.first, last) >= extents[d])
      refuse("subscripts ", t.first, " to ", last, " in dimension ", d + 1, " of ", name, ", which has 0 to ",
             extents[d] - 1);
    const long stride = strides[static_cast<size_t>(d)];
    laid.offset += t.first * stride;
    if (index) continue;
    laid.counts.push_back(t.count);
    laid.strides.push_back(t.step * stride);
  }
  return laid;
}

/// Calls `body(offset)` for each element, the last dimension the fastest.
template <typename Body>
void each_element_of(const Laid& laid, Body&& body) {
  if (laid.elements() == 0) return;
  std::array<long, PWX_MAX_DIMS> at{};
  for (;;) {
    long offset = laid.offset;
    for (size_t d = 0; d < laid.counts.size(); ++d) offset += at[d] * laid.strides[d];
    body(offset);
    size_t d = laid.counts.size();
    while (d > 0 && ++at[d - 1] == laid.counts[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

void pack(std::byte* to, const std::byte* from, const Laid& laid) {
  each_element_of(laid, [&](long offset) {
    std::memcpy(to, from + offset, laid.element_bytes);
    to += laid.element_bytes;
  });
}

void unpack(std::byte* to, const std::byte* from, const Laid& laid) {
  each_element_of(laid, [&](long offset) {
    std::memcpy(to + offset, from, laid.element_bytes);
    from += laid.element_bytes;
  });
}

/// The same elements at an image and, packed, in a bounce buffer. Negative steps go one by one.
std::vector<BlockPair> blocks_to(const Laid& there, uint64_t packed_at) {
  std::vector<BoxDim> dims(there.counts.size());
  long packed = static_cast<long>(there.element_bytes);
  bool falling = false;
  for (size_t d = dims.size(); d-- > 0; packed *= there.counts[d]) {
    dims[d] = {there.counts[d], there.strides[d], packed};
    falling = falling || there.strides[d] < 0;
  }
  if (!falling)
    return blocks_of(dims, static_cast<long>(there.element_bytes), there.offset,
                     static_cast<long>(packed_at));
  std::vector<BlockPair> blocks;
  each_element_of(there, [&](long offset) {
    blocks.push_back(
        blocks_of({}, static_cast<long>(there.element_bytes), offset, static_cast<long>(packed_at)).front());
    packed_at += there.element_bytes;
  });
  return blocks;
}

struct Sides {
  Laid there, here;
};

/// `section` of the coarray at `image` and `other` in this image's memory. Throws Failure where they do not
/// fit.
Sides sides_of(const pwx_coarray& x, long image, const pwx_triplet* section, const pwx_section& other) {
  if (x.state == nullptr) refuse("coarray ", x.name == nullptr ? "" : x.name, " is not allocated");
  if (image < 0 || image >= program().size())
    refuse("image ", image, " of coarray ", x.name, "; there are images 0 to ", program().size() - 1);
  if (other.array != nullptr)
    refuse("coarray ", x.name, " together with the distributed array ", other.array->name,
           " is not supported yet; copy by a local array");
  Sides sides{laid_out(x.ndims, x.size, x.element_bytes, section, x.name),
              laid_out(other.ndims, other.extent, other.element_bytes, other.dim, "a local array")};
  if (sides.here.element_bytes != x.element_bytes)
    refuse("elements of ", x.element_bytes, " bytes in coarray ", x.name, " and of ", other.element_bytes,
           " on the other side; both must have one type");
  return sides;
}

void same_counts(const pwx_coarray& x, const Sides& sides) {
  if (sides.there.counts != sides.here.counts)
    refuse(sides.there.elements(), " elements of coarray ", x.name, " and ", sides.here.elements(),
           " on the other side; the sections must have the same dimensions and lengths");
}

void put(const pwx_coarray& to, long image, const pwx_triplet* section, const pwx_section& other) {
  const Sides sides = sides_of(to, image, section, other);
  const bool scalar = sides.here.counts.empty() && !sides.there.counts.empty();
  if (!scalar) same_counts(to, sides);
  const size_t bytes = sides.there.elements() * to.element_bytes;
  if (bytes == 0) return;
  const auto span = bounce().take(bytes);
  std::byte* packed = bounce().at(span);
  const auto* from = static_cast<const std::byte*>(other.base);
  for (size_t copies = scalar ? sides.there.elements() : 1; copies-- > 0;)
    pack(packed + copies * to.element_bytes, from, sides.here);
  if (image == program().rank()) return unpack(static_cast<std::byte*>(to.base), packed, sides.there);
  peerway::Remote& remote = to.state->remote(image);
  for (const BlockPair& pair : blocks_to(sides.there, span.offset))
    check(program().context.put(remote.block(pair.to), {span.of, pair.from}));
}

void get(const pwx_section& other, const pwx_coarray& from, long image, const pwx_triplet* section) {
  const Sides sides = sides_of(from, image, section, other);
  const bool scalar = sides.there.counts.empty() && !sides.here.counts.empty();
  if (!scalar) same_counts(from, sides);
  const size_t bytes = sides.there.elements() * from.element_bytes;
  if (bytes == 0) return;
  const auto span = bounce().take(bytes);
  std::byte* packed = bounce().at(span);
  if (image == program().rank()) {
    pack(packed, static_cast<const std::byte*>(from.base), sides.there);
  } else {
    peerway::Remote& remote = from.state->remote(image);
    check(program().context.flush(static_cast<int>(image)));  // behind this image's own puts
    for (const BlockPair& pair : blocks_to(sides.there, span.offset))
      check(program().context.get({span.of, pair.from}, remote.block(pair.to)));
    check(program().context.flush(static_cast<int>(image)));
  }
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
  check(program().context.flush());
  program().mail.exchange(out, in);
}

int node_of(const pwx_ref& ref, const char* what) {
  const Set& set = program().sets.of(ref);
  if (set.size() != 1) refuse(what, " ", text_of(ref), ", which is ", set.size(), " nodes; name one");
  return set.ranks[0];
}

}  // namespace

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
    auto state = std::unique_ptr<pwx_coarray_state>(
        new pwx_coarray_state{x->base == nullptr ? program.context.allocate(peerway::host, bytes)
                                                 : program.context.register_memory(x->base, bytes),
                              {},
                              {}});
    state->keys = program.team.all_gather(state->memory.key());
    state->remotes.resize(static_cast<size_t>(program.size()));
    x->base = state->memory.address();
    x->state = state.get();
    pwx::coarrays().push_back(std::move(state));
  });
}

void pwx_coarray_put(const pwx_coarray* to, long image, const pwx_triplet* section, const pwx_section* other,
                     const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::put(*to, image, section, *other); });
}

void pwx_coarray_get(const pwx_section* other, const pwx_coarray* from, long image,
                     const pwx_triplet* section, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::get(*other, *from, image, section); });
}

void pwx_sync_memory(const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::check(pwx::program().context.flush()); });
}

void pwx_sync_all(const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::check(pwx::program().context.flush());
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
  pwx::guarded(where,
               [&] { pwx::program().mail.post(pwx::node_of(*node, "post to"), static_cast<uint64_t>(tag)); });
}

void pwx_wait(const pwx_ref* node, int any_tag, long tag, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const int rank = node == nullptr ? -1 : pwx::node_of(*node, "wait for");
    pwx::program().mail.wait(
        rank, any_tag != 0 ? std::nullopt : std::optional<uint64_t>(static_cast<uint64_t>(tag)));
  });
}

}  // extern "C"
