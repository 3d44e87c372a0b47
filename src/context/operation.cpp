// Put, get, raise and flush: checks, finds the route and hands over to paths. The hot path of a small
// transfer is two range checks, two loads and one virtual call.
#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "context/context.h"

namespace pw {
namespace {

std::string describe(const Remote& remote) {
  return format("remote region ({} bytes, rank {}, key v1)", remote.bytes(), remote.rank());
}

std::string describe(const Region& region) {
  return format("local region ({} bytes on {})", region.bytes(), to_string(region.device().id()));
}

bool inside(const pw_block& block, uint64_t span) {
  return block.dims == 0 && block.offset <= span && block.block_bytes <= span - block.offset;
}

Layout checked_layout(const pw_block& to, uint64_t to_span, const std::string& to_what, const pw_block& from,
                      uint64_t from_span, const std::string& from_what) {
  return join(to, to_span, to_what.c_str(), from, from_span, from_what.c_str());
}

}  // namespace

pw_status Context::put(Remote& to, const pw_block& to_block, Region& from, const pw_block& from_block,
                       const Raise* raise) {
  Transfer transfer;
  transfer.op = Op::put;
  transfer.remote = &to;
  transfer.local = &from;
  transfer.remote_offset = to_block.offset;
  transfer.local_offset = from_block.offset;
  if (inside(to_block, to.bytes()) && inside(from_block, from.bytes()) &&
      to_block.block_bytes == from_block.block_bytes)
    transfer.layout.shape.block_bytes = to_block.block_bytes;
  else
    transfer.layout =
        checked_layout(to_block, to.bytes(), describe(to), from_block, from.bytes(), describe(from));
  return start(transfer, raise);
}

pw_status Context::get(Remote& from, const pw_block& from_block, Region& to, const pw_block& to_block) {
  Transfer transfer;
  transfer.op = Op::get;
  transfer.remote = &from;
  transfer.local = &to;
  transfer.remote_offset = from_block.offset;
  transfer.local_offset = to_block.offset;
  if (inside(to_block, to.bytes()) && inside(from_block, from.bytes()) &&
      to_block.block_bytes == from_block.block_bytes)
    transfer.layout.shape.block_bytes = to_block.block_bytes;
  else
    transfer.layout =
        checked_layout(to_block, to.bytes(), describe(to), from_block, from.bytes(), describe(from));
  return start(transfer, nullptr);
}

pw_status Context::start(Transfer& transfer, const Raise* raise) {
  Remote& remote = *transfer.remote;
  if (!remote.current())
    return fail(PW_STALE_KEY,
                format("peerway: the region of rank {} behind this key was closed; ask that rank for a new "
                       "key",
                       remote.rank()));
  if (raise != nullptr && !raise->signal->current())
    return fail(PW_STALE_KEY,
                format("peerway: the signal of rank {} behind this key was closed", raise->signal->rank()));
  if (team_.lost(remote.rank())) return fail(PW_PEER_LOST, "peerway: " + team_.describe_loss(remote.rank()));
  const uint64_t bytes = transfer.layout.shape.bytes();
  if (bytes == 0) return raise != nullptr ? this->raise(*raise) : PW_OK;
  const Resolved& resolved =
      resolver_->resolve(transfer.op, route::shape_class(transfer.layout.shape), *transfer.local, remote);
  touched_[static_cast<size_t>(remote.rank())].store(true, std::memory_order_relaxed);
  const route::Choice& choice = resolved.route->lookup(bytes);
  // A signal on another host, raised after a transfer on this one, needs two paths.
  const bool apart = raise != nullptr && raise->signal->word() == nullptr && remote.same_host();
  const Raise* with = apart ? nullptr : raise;
  const pw_status status = choice.split >= 0 ? start_split(resolved, resolved.route->split(choice), transfer, with)
                                             : resolved.paths[choice.path]->start(transfer, with);
  if (status != PW_OK || !apart) return status;
  if (const pw_status done = flush_rank(remote.rank(), PW_FOREVER); done != PW_OK) return done;
  return this->raise(*raise);
}

pw_status Context::start_split(const Resolved& resolved, const route::ReadySplit& split,
                               const Transfer& transfer, const Raise* raise) {
  const Layout& whole = transfer.layout;
  const uint64_t bytes = whole.shape.bytes();
  const uint64_t slice_bytes = whole.shape.contiguous() ? 0 : bytes / whole.shape.count[0];
  const route::Pieces pieces = split.divide(bytes, slice_bytes);
  const uint64_t unit = slice_bytes == 0 ? 1 : slice_bytes;
  // Asynchronous paths first, so that all of them are at work while a synchronous one keeps this thread.
  for (const bool asynchronous : {true, false})
    for (const route::Piece& piece : pieces) {
      Path* path = resolved.paths[split.path[piece.part]];
      if (path->asynchronous() != asynchronous) continue;
      Transfer part = transfer;
      uint64_t to = 0, from = 0;
      part.layout = slice(whole, piece.offset / unit, piece.bytes / unit, to, from);
      part.remote_offset += transfer.op == Op::put ? to : from;
      part.local_offset += transfer.op == Op::put ? from : to;
      if (const pw_status status = path->start(part, nullptr); status != PW_OK) return status;
    }
  if (raise == nullptr) return PW_OK;
  Path* last = nullptr;
  for (const route::Piece& piece : pieces) {
    last = resolved.paths[split.path[piece.part]];
    if (const pw_status status = last->flush(transfer.remote->rank(), PW_FOREVER); status != PW_OK)
      return status;
  }
  return last->raise(*raise);
}

pw_status Context::raise(const Raise& raise) {
  Remote& signal = *raise.signal;
  if (!signal.current())
    return fail(PW_STALE_KEY,
                format("peerway: the signal of rank {} behind this key was closed", signal.rank()));
  if (team_.lost(signal.rank())) return fail(PW_PEER_LOST, "peerway: " + team_.describe_loss(signal.rank()));
  if (signal.word() != nullptr) return raise_by_processor(raise, resolver_->paths().front().get());
  touched_[static_cast<size_t>(signal.rank())].store(true, std::memory_order_relaxed);
  return resolver_->far_raiser(signal).raise(raise);
}

pw_status Context::flush_rank(int rank, uint64_t deadline_ns) {
  if (!touched_[static_cast<size_t>(rank)].load(std::memory_order_relaxed)) return PW_OK;
  for (const auto& path : resolver_->paths())
    if (const pw_status status = path->flush(rank, deadline_ns); status != PW_OK) return status;
  if (team_.lost(rank)) return fail(PW_PEER_LOST, "peerway: " + team_.describe_loss(rank));
  return PW_OK;
}

pw_status Context::flush(int rank, uint64_t deadline_ns) {
  if (rank != PW_ANY_RANK && (rank < 0 || rank >= team_.size()))
    return fail(PW_OUT_OF_RANGE,
                format("peerway: flush of rank {}; this team has ranks 0 to {}", rank, team_.size() - 1));
  if (rank != PW_ANY_RANK) return flush_rank(rank, deadline_ns);
  // Every rank is flushed, whatever happens with another; the first failure is told.
  pw_status first = PW_OK;
  std::string message;
  for (int r = 0; r < team_.size(); ++r) {
    const pw_status status = flush_rank(r, deadline_ns);
    if (status == PW_OK || first != PW_OK) continue;
    first = status;
    message = last_error_message();
  }
  return first == PW_OK ? PW_OK : fail(first, message);
}

}  // namespace pw
