#include "path/ucx/ucx.h"

#include <algorithm>

#include "base/config.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"

namespace pw::ucx {
namespace {

// What a rank tells the others: a RankUcx and its address.
Bytes card_of(const RankUcx& rank, const Bytes& address) {
  ByteWriter writer;
  writer.put(static_cast<uint8_t>(rank.running));
  writer.put(static_cast<uint8_t>(rank.device_memory));
  writer.put_text(rank.text);
  writer.put(static_cast<uint32_t>(address.size()));
  writer.put(ByteView(address));
  return writer.take();
}

RankUcx read_card(ByteView card, Bytes& address) {
  ByteReader reader(card, "the card of a rank's UCX");
  RankUcx rank;
  rank.running = reader.get<uint8_t>() != 0;
  rank.device_memory = reader.get<uint8_t>() != 0;
  rank.text = reader.get_text(4096);
  const ByteView bytes = reader.take(reader.get<uint32_t>());
  address.assign(bytes.begin(), bytes.end());
  return rank;
}

bool any(Team& team, bool mine) {
  const std::byte wish{mine};
  const Bytes wishes = team.all_gather({&wish, 1}, config_number("timeout"));
  return std::any_of(wishes.begin(), wishes.end(), [](std::byte each) { return each != std::byte{0}; });
}

}  // namespace

void Ucx::start(Team& team, ControlSegment& control, Progress& progress, bool wanted) {
  rank_ = team.rank();
  const std::string setting = config("ucx"), file = config("ucx_library");
  if (!any(team, setting == "on" || (wanted && setting != "off"))) {
    why_not_ = setting == "off" ? "PEERWAY_UCX=off"
                                : "all ranks are on one host, where UCX is only started with PEERWAY_UCX=on";
    return;
  }
  RankUcx mine;
  Bytes address;
  try {
    if (setting == "off") throw Error(PW_UNAVAILABLE, "PEERWAY_UCX=off");
    std::string why;
    const Library* library = load(candidates(file), why);
    if (library == nullptr)
      throw Error(PW_UNAVAILABLE,
                  format("no UCX was found: {}. Install the site's UCX (Debian: libucx0) or the wheel "
                         "libucx-cu13, or set PEERWAY_UCX_LIBRARY to its libucp.so.0",
                         why));
    engine_ = std::make_shared<Engine>(*library, team, control.control().closed, progress);
    progress.add(*engine_);
    control.control().sleepers.unseen.store(1);  // a network card writes words, and wakes nobody
    address = engine_->address();
    mine.running = true;
    mine.device_memory = engine_->device_memory();
    mine.text = format("UCX {} ({})", library->version, library->path);
  } catch (const Error& error) {
    mine.text = std::string(error.what()).substr(0, 2000);
  }
  why_not_ = mine.text;
  // The others are waiting for this rank's card, whether or not it has UCX.
  std::vector<Bytes> addresses;
  for (const Bytes& card : team.all_gather_parts(card_of(mine, address), config_number("timeout"))) {
    Bytes theirs;
    ranks_.push_back(read_card(card, theirs));
    addresses.push_back(std::move(theirs));
  }
  if (engine_ != nullptr) {
    engine_->set_addresses(std::move(addresses));
    engine_->receive(receiver_);
  }
  const bool strict = config("strict") == "on";
  if (engine_ == nullptr && setting != "off" && (strict || !file.empty()))
    throw Error(PW_UNAVAILABLE, format("peerway: UCX is wanted ({}), but {}",
                                       config_origin(strict ? "strict" : "ucx_library"), why_not_));
}

Offer without_ucx(const Pair& pair) {
  return pair.same_host ? Offer::unsuited(pair.why_no_ucx) : Offer::hindered(pair.why_no_ucx);
}

std::string Ucx::why_no_device_memory(int rank) const {
  const RankUcx& theirs = ranks_[at(rank)];
  return format("{}{} has no CUDA support; install libucx-cu13 or point UCX_ROOT at a build that has it",
                rank == rank_ ? "" : format("at rank {}: ", rank), theirs.text);
}

void Ucx::facts(Pair& pair, const Remote& remote) const {
  const int rank = remote.rank();
  pair.ucx_running = engine_ != nullptr && ranks_[at(rank)].running;
  pair.ucx_key = engine_ != nullptr && remote.key.attachment("ucx") != nullptr;
  if (engine_ == nullptr)
    pair.why_no_ucx = why_not_;
  else if (!ranks_[at(rank)].running)
    pair.why_no_ucx = format("at rank {}: {}", rank, ranks_[at(rank)].text);
  else if (!pair.ucx_key)
    pair.why_no_ucx = format("UCX at rank {} could not register this memory; its log says why", rank);
  if (engine_ == nullptr) return;
  for (const int each : {rank_, rank}) {
    const pw_device_kind kind = each == rank_ ? pair.local.kind : pair.remote.kind;
    pair.ucx_device_memory = kind == PW_HOST || ranks_[at(each)].device_memory;
    if (pair.ucx_device_memory) continue;
    pair.why_no_ucx_device_memory = why_no_device_memory(each);
    return;
  }
  if (pair.local.kind == PW_HOST && pair.remote.kind == PW_HOST) return;
  try {
    if (!engine_->by_messages(rank)) return;
    pair.why_no_ucx_device_memory = format(
        "UCX has no transport to rank {} that reaches memory there by itself, only some that send messages; "
        "that takes an RDMA network, and ucx/staged does without",
        rank);
  } catch (const Error& error) {
    pair.why_no_ucx_device_memory = error.what();
  }
  pair.ucx_device_memory = false;
}

Memory& Ucx::memory_of(Region& region) const {
  return region.attachments.get<Memory>(kUcxAttachment, [&] {
    region.device().enter();
    if (region.device().id().kind != PW_HOST) engine_->serve(region.device());
    return std::make_shared<Memory>(engine_, region.address(), region.bytes(),
                                    region.device().id().kind == PW_HOST);
  });
}

RemoteMemory& Ucx::memory_of(Remote& remote) const {
  return remote.attachments.get<RemoteMemory>(kUcxAttachment, [&] {
    return std::make_shared<RemoteMemory>(engine_, remote.rank(), *remote.key.attachment("ucx"));
  });
}

Bytes Ucx::key_of(Region& region, size_t room) const {
  if (engine_ == nullptr || (region.device().id().kind != PW_HOST && !engine_->device_memory())) return {};
  try {
    const Bytes& key = memory_of(region).key();
    if (key.size() <= room) return key;
    log_once(LogLevel::warning,
             format("UCX keys of {} bytes are too long; UCX_TLS with fewer transports makes them shorter",
                    key.size()));
  } catch (const Error& error) {
    log(LogLevel::warning, error.what());
  }
  return {};
}

void Ucx::receive(std::function<void(ByteView)> receiver) {
  receiver_ = std::move(receiver);
  if (engine_ != nullptr) engine_->receive(receiver_);
}

Bytes Ucx::key_of(ControlSegment& control) {
  if (engine_ == nullptr) return {};
  if (signals_ == nullptr) {
    // The whole segment: a UCX with CUDA pins what it is given, and the GPUs' own pin of the segment, which
    // comes later, is refused over a part that is pinned already.
    signals_ = std::make_shared<Memory>(engine_, &control.control(), sizeof(Control));
  }
  return signals_->key();
}

}  // namespace pw::ucx
