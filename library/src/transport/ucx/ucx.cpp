#include "transport/ucx/ucx.h"

#include <algorithm>

#include "base/format.h"
#include "base/log.h"
#include "base/setting.h"
#include "base/status.h"
#include "device/kinds.h"
#include "transport/ucx/direct.h"
#include "transport/ucx/memory_kinds.h"
#include "transport/ucx/staged.h"

namespace pw::settings {

enum class UseUcx : uint8_t { automatic, on, off };
const ChoiceSetting<UseUcx> ucx{
    "ucx", "auto|on|off", "auto",
    "UCX, the path to other hosts. auto: started if ranks are on several hosts, or if `paths` or the route "
    "table names it."};
const PathSetting ucx_library{"ucx_library", "",
                              "libucp.so.0 of UCX. Empty: that of UCX_ROOT, the system or the Python wheel."};

}  // namespace pw::settings

namespace pw::ucx {
namespace {

// Packs what a rank sends the others: a RankUcx and its address.
Bytes nic_of(const RankUcx& rank, const Bytes& address) {
  ByteWriter writer;
  writer.put(static_cast<uint8_t>(rank.running));
  writer.put(rank.memory_kinds);
  writer.put_text(rank.text);
  writer.put_sized(address);
  return writer.take();
}

RankUcx read_nic(ByteView nic, Bytes& address) {
  ByteReader reader(nic, "the NIC of a rank's UCX");
  RankUcx rank;
  rank.running = reader.get<uint8_t>() != 0;
  rank.memory_kinds = reader.get<uint32_t>();
  rank.text = reader.get_text(4096);
  const ByteView bytes = reader.take_sized();
  address.assign(bytes.begin(), bytes.end());
  return rank;
}

}  // namespace

Ucx::Ucx(const Surroundings& surroundings)
    : surroundings_(surroundings), attachment_(surroundings.attachments.take()) {}

std::vector<std::unique_ptr<Path>> Ucx::paths() {
  std::vector<std::unique_ptr<Path>> paths;
  paths.push_back(std::make_unique<UcxDirect>(*this));
  paths.push_back(std::make_unique<UcxStaged>(surroundings_, *this));
  return paths;
}

bool Ucx::wanted(bool named) const {
  const auto use = settings::ucx.value();
  return use == settings::UseUcx::on || (named && use != settings::UseUcx::off);
}

Bytes Ucx::open(const TransportAssumptions& assumptions) {
  const bool off = settings::ucx.value() == settings::UseUcx::off;
  RankUcx mine;
  Bytes address;
  if (!assumptions.wanted && !assumptions.several_hosts) {
    mine.text = "all ranks are on one host, where UCX is only started with PEERWAY_UCX=on";
  } else if (engine_ == nullptr && !off) {
    try {
      std::string why;
      const Library* library = load(candidates(settings::ucx_library.text()), why);
      if (library == nullptr)
        throw Error(PW_UNAVAILABLE,
                    format("no UCX was found: {}. Install the site's UCX (Debian: libucx0) or the wheel "
                           "libucx-cu13, or set PEERWAY_UCX_LIBRARY to its libucp.so.0",
                           why));
      ControlSegment& control = surroundings_.control;
      engine_ = std::make_shared<UcxEngine>(*library, surroundings_.team, control.control().closed,
                                            surroundings_.progress);
      surroundings_.progress.add(*engine_);
      control.control().sleepers.unseen.store(1);  // a NIC writes words and wakes nobody
    } catch (const Error& error) {
      mine.text = std::string(error.what()).substr(0, 2000);
    }
    const bool strict = settings::strict.value();
    if (engine_ == nullptr && (strict || !settings::ucx_library.text().empty()))
      throw Error(PW_UNAVAILABLE,
                  format("UCX is wanted ({}), but {}",
                         strict ? settings::strict.origin() : settings::ucx_library.origin(), mine.text));
  }
  if (engine_ != nullptr) {
    const Library& library = engine_->library();
    mine = {true, engine_->memory_kinds(), format("UCX {} ({})", library.version, library.path)};
    address = engine_->address();
  }
  why_not_ = off ? "PEERWAY_UCX=off" : mine.text;
  if (off) mine.text = why_not_;
  return nic_of(mine, address);
}

void Ucx::receive_facts(const std::vector<Bytes>& ranks) {
  rank_facts_ = std::make_shared<const RankFacts>(ranks);
  if (engine_ == nullptr) return;
  engine_->set_addresses([rank_facts = rank_facts_](int rank) {
    Bytes address;
    read_nic(rank_facts->of(rank), address);
    return address;
  });
  engine_->receive(receiver_);
}

RankUcx Ucx::rank_of(int rank) const {
  Bytes address;
  return read_nic(rank_facts_->of(rank), address);
}

Offer without_ucx(const Pair& pair, const Facts& facts) {
  return pair.same_host ? Offer::unsuited(facts.why_not) : Offer::hindered(facts.why_not);
}

Facts Ucx::facts(const Pair& pair, const Remote& remote) const {
  const int rank = remote.rank();
  Facts facts;
  if (engine_ == nullptr) {
    facts.why_not = why_not_;
    return facts;
  }
  const RankUcx theirs = rank_of(rank);
  facts.running = theirs.running;
  facts.key = remote.key.attachment("ucx") != nullptr;
  if (!facts.running)
    facts.why_not = format("at rank {}: {}", rank, theirs.text);
  else if (!facts.key)
    facts.why_not = format("UCX at rank {} could not register this memory; its log says why", rank);
  facts.why_no_memory = why_no_memory(pair, rank);
  facts.memory = facts.why_no_memory.empty();
  return facts;
}

// Returns an empty text if UCX can access the memory at both ends.
std::string Ucx::why_no_memory(const Pair& pair, int rank) const {
  const int own = surroundings_.team.rank();
  for (const int each : {own, rank}) {
    const pw_device_kind kind = each == own ? pair.local.kind : pair.remote.kind;
    const RankUcx theirs = rank_of(each);
    if (kind != PW_HOST && (theirs.memory_kinds >> kind & 1u) == 0)
      return format(
          "{}{} sees no {} memory; install a UCX that does (for cuda: libucx-cu13; for rocm: one configured "
          "--with-rocm) or point UCX_ROOT at one",
          each == own ? "" : format("at rank {}: ", each), theirs.text,
          memory_name(device_kinds()[kind].name));
  }
  if (pair.local.kind == PW_HOST && pair.remote.kind == PW_HOST) return {};
  try {
    if (!engine_->by_messages(rank)) return {};
    return format(
        "UCX has no transport to rank {} that reaches memory there by itself, only some that send messages; "
        "that takes an RDMA network, and ucx/staged does without",
        rank);
  } catch (const Error& error) {
    return error.what();
  }
}

UcxMemory& Ucx::memory_of(Region& region) const {
  return region.attachments.get<UcxMemory>(attachment_, [&] {
    region.device().enter();
    if (region.device().id().kind != PW_HOST) engine_->serve(region.device());
    return std::make_shared<UcxMemory>(engine_, region.address(), region.bytes(),
                                       region.device().id().kind == PW_HOST);
  });
}

UcxRemoteMemory& Ucx::memory_of(Remote& remote) const {
  return remote.attachments.get<UcxRemoteMemory>(attachment_, [&] {
    return std::make_shared<UcxRemoteMemory>(engine_, remote.rank(), *remote.key.attachment("ucx"));
  });
}

Bytes Ucx::key_of(Region& region, size_t room) const {
  const pw_device_kind kind = region.device().id().kind;
  if (engine_ == nullptr || (kind != PW_HOST && (engine_->memory_kinds() >> kind & 1u) == 0)) return {};
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

void Ucx::attach(Key& key, Region& region) {
  if (Bytes bytes = key_of(region, room_in(key)); !bytes.empty())
    key.attached.emplace_back("ucx", std::move(bytes));
}

void Ucx::attach_signals(Key& key) {
  if (engine_ == nullptr) return;
  if (signals_ == nullptr) {
    // Registers the whole segment: UCX with CUDA pins what it registers, and the driver refuses to pin the
    // segment for a GPU later if a part of it is pinned already.
    signals_ = std::make_shared<UcxMemory>(engine_, &surroundings_.control.control(), sizeof(Control));
  }
  key.attached.emplace_back("ucx", signals_->key());
}

}  // namespace pw::ucx
