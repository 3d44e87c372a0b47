#include "xacc/runtime/coarrays/synchronisation.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/program/collective.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

/// Waits until each of these images has made the same call.
void synchronise_with(const std::vector<int>& images) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (const int image : images) {
    const int rank = rank_of_image(image, text("sync with image ", image));
    if (rank == program().rank()) continue;
    out.push_back({rank, nullptr, 0});
    in.push_back({rank, nullptr, 0});
  }
  complete_segment();
  program().mail.exchange(out, in);
}

int node_of(const pwx_ref& ref, const char* action) {
  const Set& set = program().sets.of(ref);
  if (set.size() != 1) refuse(action, " ", text_of(ref), ", which is ", set.size(), " nodes; name one");
  return set.ranks[0];
}

}  // namespace

int rank_of_image(long image, const std::string& action) {
  const Set& images = program().executing();
  if (image < 0 || image >= images.size()) refuse(action, "; there are images 0 to ", images.size() - 1);
  return images.ranks[static_cast<size_t>(image)];
}

void complete_segment() {
  wait_for_unqueued();
  peerway::check(program().context.flush());
}

}  // namespace pwx

extern "C" {

void pwx_images_begin(const pwx_nodes* nodes, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::Program& program = pwx::program();
    std::vector<int> ranks(nodes->ranks, nodes->ranks + nodes->total);
    if (std::ranges::find(ranks, program.rank()) == ranks.end()) ranks = {program.rank()};
    program.push(program.sets.of(ranks));
  });
}

void pwx_images_end() { pwx::program().pop(); }

long pwx_coarray_this_image(const pwx_coarray* x) {
  const int* const end = x->on->ranks + x->on->total;
  const int* const mine = std::find(x->on->ranks, end, pwx::program().rank());
  return mine == end ? 0 : mine - x->on->ranks + 1;
}

long pwx_coarray_num_image(const pwx_coarray* x) { return x->on->total; }

void pwx_sync_memory(const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::complete_segment(); });
}

void pwx_sync_all(const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::complete_segment();
    pwx::barrier(pwx::program(), pwx::program().executing());
  });
}

void pwx_sync_image(long image, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::synchronise_with({static_cast<int>(image)}); });
}

void pwx_sync_images(long count, const int* images, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::synchronise_with({images, images + count}); });
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
