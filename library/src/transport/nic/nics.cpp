#include "transport/nic/nics.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "base/log.h"
#include "base/setting.h"
#include "base/status.h"
#include "transport/nic/direct.h"
#include "transport/nic/memory_description.h"

namespace pw::settings {

const TextSetting nic{
    "nic", "",
    "NICs, separated by ';', each [NAME=]PLUGIN[?OPTIONS]: the plugin's file, or its name if it comes with "
    "Peerway, and options for it. Empty: none."};

}  // namespace pw::settings

namespace pw::nic {
namespace {

// Derives a name from the file of a plugin that cannot be loaded.
std::string name_by_file(const std::string& plugin) {
  std::string name = std::filesystem::path(plugin).stem().string();
  for (const std::string_view prefix : {"lib", "peerway_nic_"})
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return name;
}

// The message of a rank to the others about one of its NICs.
struct NicFacts {
  std::string name;
  RankNic rank;
  nic::EndpointFacts facts;
};

void write(ByteWriter& writer, const NicFacts& nic_facts) {
  writer.put_text(nic_facts.name);
  writer.put(static_cast<uint8_t>(nic_facts.rank.running));
  writer.put_text(nic_facts.rank.text);
  writer.put(std::as_bytes(std::span(&nic_facts.facts, 1)));
}

std::vector<NicFacts> read_all(ByteView bytes) {
  ByteReader reader(bytes, "the NICs of a rank");
  std::vector<NicFacts> all(reader.get<uint8_t>());
  for (NicFacts& nic_facts : all) {
    nic_facts.name = reader.get_text(256);
    nic_facts.rank.running = reader.get<uint8_t>() != 0;
    nic_facts.rank.text = reader.get_text(4096);
    std::memcpy(&nic_facts.facts, reader.take(sizeof nic_facts.facts).data(), sizeof nic_facts.facts);
  }
  return all;
}

/// Returns the facts that the rank sent about the NIC of that name.
std::optional<NicFacts> facts_of(const RankFacts& rank_facts, int rank, const std::string& name) {
  for (NicFacts& nic_facts : read_all(rank_facts.of(rank)))
    if (nic_facts.name == name) return std::move(nic_facts);
  return std::nullopt;
}

constexpr size_t kAddressBytes = sizeof(uint64_t);

}  // namespace

PathFamily path_family() {
  return {"nic:", "NIC", "PEERWAY_NIC", "a plugin's file, or the name of one that comes with Peerway"};
}

Nic::Nic(NicSpec spec, size_t number) : spec_(std::move(spec)), number_(number) {
  try {
    plugin_ = Plugin::load(plugin_file(spec_.plugin));
    if (spec_.name.empty()) spec_.name = plugin_->name();
  } catch (const Error& error) {
    why_not_loaded_ = why_not_ = error.what();
    if (spec_.name.empty()) spec_.name = name_by_file(spec_.plugin);
  }
  name_ = "nic:" + spec_.name;
}

Nics::Nics(const Surroundings& surroundings) : surroundings_(surroundings) {
  for (NicSpec& spec : parse_nics(settings::nic.text(), settings::nic.origin())) {
    const size_t number = surroundings.attachments.take();
    if (number == Attachments::kMostPaths)
      throw Error(PW_BAD_CONFIG, format("{} names more than {} NICs; a context has no room for more",
                                        settings::nic.origin(), all_.size()));
    auto nic = std::make_unique<Nic>(std::move(spec), number);
    for (const auto& other : all_)
      if (other->name() == nic->name())
        throw Error(PW_BAD_CONFIG, format("{} has two NICs {}; give one another name: other={}",
                                          settings::nic.origin(), nic->name(), nic->spec_.plugin));
    all_.push_back(std::move(nic));
  }
}

std::vector<std::unique_ptr<Path>> Nics::paths() {
  std::vector<std::unique_ptr<Path>> paths;
  for (const auto& nic : all_) paths.push_back(std::make_unique<NicDirect>(*nic));
  return paths;
}

Bytes Nics::open(const TransportAssumptions&) {
  ByteWriter writer;
  writer.put(static_cast<uint8_t>(all_.size()));
  Control& control = surroundings_.control.control();
  for (const auto& nic : all_) {
    NicFacts nic_facts{nic->name(), {}, {}};
    nic->rank_ = surroundings_.team.rank();
    if (nic->plugin_ != nullptr && nic->engine_ == nullptr) try {
        nic->engine_ = std::make_shared<NicEngine>(nic->plugin_, nic->spec_, surroundings_.team,
                                                   control.closed, surroundings_.progress);
        surroundings_.progress.add(*nic->engine_);
        control.sleepers.unseen.store(1);  // a NIC writes words and wakes nobody
        nic->why_not_.clear();
      } catch (const Error& error) {
        nic->why_not_ = error.what();
        log(LogLevel::warning, nic->why_not_);
      }
    if (!nic->why_not_loaded_.empty() || (settings::strict.value() && nic->engine_ == nullptr))
      throw Error(PW_UNAVAILABLE, format("{} (asked for by {})", nic->why_not_, settings::nic.origin()));
    if (nic->engine_ != nullptr) {
      nic_facts.rank.running = true;
      nic_facts.facts = nic->engine_->facts();
    }
    nic_facts.rank.text = nic->why_not_.substr(0, 2000);
    write(writer, nic_facts);
  }
  return writer.take();
}

std::vector<uint32_t> Nics::coordinates() const {
  for (const auto& nic : all_)
    if (nic->engine() != nullptr && nic->engine()->info().dimensions > 0) {
      const pw_nic_info& info = nic->engine()->info();
      return {info.coordinate, info.coordinate + info.dimensions};
    }
  return {};
}

void Nics::receive_facts(const std::vector<Bytes>& ranks) {
  const auto rank_facts = std::make_shared<const RankFacts>(ranks);
  for (const auto& nic : all_) {
    nic->rank_facts_ = rank_facts;
    if (nic->engine_ != nullptr)
      nic->engine_->set_peers(
          [rank_facts, name = nic->name()](int rank) -> std::optional<nic::EndpointFacts> {
            const auto nic_facts = facts_of(*rank_facts, rank, name);
            return nic_facts && nic_facts->rank.running ? std::optional(nic_facts->facts) : std::nullopt;
          });
  }
}

// ---- one NIC ----

std::string Nic::why_not(const Pair& pair, const Remote& remote) const {
  const auto takes = [&](pw_device_kind kind) {
    return kind == PW_HOST || (engine_->info().memory_kinds >> kind & 1u) != 0;
  };
  if (engine_ == nullptr) return why_not_;
  const auto theirs = facts_of(*rank_facts_, remote.rank(), name_);
  if (!theirs) return format("at rank {}: its setting `nic` does not name this NIC", remote.rank());
  if (!theirs->rank.running) return format("at rank {}: {}", remote.rank(), theirs->rank.text);
  if (!takes(pair.local.kind) || !takes(pair.remote.kind)) return "this NIC does not accept GPU memory";
  if (remote.key.attachment(name_) == nullptr)
    return format("it could not register this memory at rank {}, whose log says why", remote.rank());
  return engine_->why_unreachable(remote.rank());
}

RegionMemory& Nic::memory_of(Region& region) const {
  return region.attachments.get<RegionMemory>(number_, [&] {
    region.device().enter();
    return std::make_shared<RegionMemory>(engine_, MemoryDescription(region).nic_span());
  });
}

RankMemory& Nic::memory_of(Remote& remote) const {
  return remote.attachments.get<RankMemory>(number_, [&] {
    const Bytes* bytes = remote.key.attachment(name_);
    pw_nic_key key{};
    uint64_t base = 0;
    if (bytes == nullptr || bytes->size() < kAddressBytes || bytes->size() > kAddressBytes + sizeof key.bytes)
      throw Error(PW_BAD_KEY, format("the key of rank {} has nothing for the NIC {}", remote.rank(), name_));
    std::memcpy(&base, bytes->data(), kAddressBytes);
    key.length = static_cast<uint32_t>(bytes->size() - kAddressBytes);
    std::memcpy(key.bytes, bytes->data() + kAddressBytes, key.length);
    return std::make_shared<RankMemory>(engine_, remote.rank(), key, base);
  });
}

namespace {

Bytes bytes_of(const RegionMemory& memory) {
  const auto base = reinterpret_cast<uint64_t>(memory.memory->span().address);
  const pw_nic_key& key = memory.memory->key();
  Bytes bytes(kAddressBytes + key.length);
  std::memcpy(bytes.data(), &base, kAddressBytes);
  std::memcpy(bytes.data() + kAddressBytes, key.bytes, key.length);
  return bytes;
}

}  // namespace

Bytes Nic::key_of(Region& region) const {
  const pw_device_kind kind = region.device().id().kind;
  if (engine_ == nullptr || (kind != PW_HOST && (engine_->info().memory_kinds >> kind & 1u) == 0)) return {};
  try {
    return bytes_of(memory_of(region));
  } catch (const Error& error) {
    log(LogLevel::warning, error.what());
    return {};
  }
}

Bytes Nic::key_of(ControlSegment& control) {
  if (engine_ == nullptr) return {};
  if (signals_ == nullptr) {
    auto& words = control.control().signal;
    signals_ = std::make_shared<RegionMemory>(
        engine_, pw_nic_span{sizeof(pw_nic_span), words, sizeof words, PW_NIC_HOST, 0, control.descriptor(),
                             offsetof(Control, signal)});
  }
  return bytes_of(*signals_);
}

bool Nic::can_store_word(const Remote& signal) const {
  return engine_ != nullptr && signal.key.attachment(name_) != nullptr && engine_->reaches(signal.rank());
}

}  // namespace pw::nic
