// The exchange of faces between neighbours of a periodic grid of ranks, one-sided and two-sided.
#include <array>

#include "job.h"
#include "post.h"

namespace scale {

namespace {

namespace s4u = simgrid::s4u;

/// A rank's two lanes through one of its faces, and the rank on the other side.
struct Face {
  size_t peer;
  Lane out, in;
};

/// Names contain the sender's face, because two ranks in a dimension are each other's neighbours on both
/// sides.
std::string name_of(const char* what, size_t from, size_t dim, bool forward) {
  return what + std::to_string(from) + (forward ? "+" : "-") + std::to_string(dim);
}

using Pair = std::array<Face, 2>;  // backward, forward

std::vector<Pair> faces_of(const char* what, size_t rank, const Extents& grid) {
  std::vector<Pair> all;
  for (size_t dim = 0; dim < grid.size(); ++dim) {
    if (grid[dim] == 1) continue;
    const auto face = [&](bool forward) {
      const size_t peer = neighbour(rank, grid, dim, forward);
      return Face{peer, Lane(name_of(what, rank, dim, forward)), Lane(name_of(what, peer, dim, !forward))};
    };
    all.push_back({face(false), face(true)});
  }
  return all;
}

bool from_peer(Face& face) { return face.in.wait() == Values{face.peer}; }

/// Like a halo plan: sends all faces at once, then waits for what the neighbours put here.
bool exchange_by_puts(size_t rank, std::vector<Pair>& faces, uint64_t bytes) {
  std::vector<s4u::CommPtr> sent;
  for (Pair& pair : faces)
    for (Face& face : pair) sent.push_back(face.out.put(bytes, {rank}));
  bool right = true;
  for (Pair& pair : faces)
    for (Face& face : pair) right = from_peer(face) && right;
  for (s4u::CommPtr& put : sent) put->wait();
  return right;
}

/// Exchanges messages through both faces of a dimension.
bool both_ways(size_t rank, Pair& pair, uint64_t bytes) {
  std::array<s4u::CommPtr, 2> sent;
  for (size_t i : {0, 1}) sent[i] = pair[i].out.put(bytes, {rank});
  bool right = true;
  for (Face& face : pair) right = from_peer(face) && right;
  for (s4u::CommPtr& put : sent) put->wait();
  return right;
}

/// Like MPI_Sendrecv, one dimension after another. A large message is announced and then fetched.
bool exchange_by_messages(size_t rank, std::vector<Pair>& faces, uint64_t bytes, uint64_t eager) {
  bool right = true;
  for (Pair& pair : faces) {
    if (bytes > eager)
      for (int i = 0; i < 2; ++i) right = both_ways(rank, pair, kSignalBytes) && right;  // announce; fetch
    right = both_ways(rank, pair, bytes) && right;
  }
  return right;
}

template <class Exchange>
Result run(s4u::Engine& engine, const Job& job, Exchange&& exchange) {
  Result result;
  result.us = timed(engine, [&] {
    for (size_t rank = 0; rank < job.host_of.size(); ++rank) {
      std::vector<Pair> faces = faces_of("halo", rank, job.grid);
      const s4u::ActorPtr actor = s4u::Actor::create("rank", job.host_of[rank], [&, rank, faces]() mutable {
        if (!exchange(rank, faces)) result.right = false;
      });
      for (Pair& pair : faces)
        for (Face& face : pair) face.in.open(actor);
    }
  });
  return result;
}

}  // namespace

Result halo_put(s4u::Engine& engine, const Job& job, uint64_t bytes) {
  return run(engine, job, [&](size_t rank, auto& faces) { return exchange_by_puts(rank, faces, bytes); });
}

Result halo_two_sided(s4u::Engine& engine, const Job& job, uint64_t bytes) {
  return run(engine, job,
             [&](size_t rank, auto& faces) { return exchange_by_messages(rank, faces, bytes, job.eager); });
}

Result message(s4u::Engine& engine, const Job& job, uint64_t bytes, size_t to) {
  Result result;
  Lane lane("message");
  result.us = timed(engine, [&] {
    s4u::Actor::create("from", job.host_of[0], [&] { lane.put(bytes, {7})->wait(); });
    lane.open(s4u::Actor::create("to", job.host_of[to], [&] { result.right = lane.wait() == Values{7}; }));
  });
  return result;
}

}  // namespace scale
