// A NIC within one process whose operations are held back: the test lets one part of one operation happen at
// a time, in any order that the guarantees which the NIC keeps allow. What it states may be more than it
// keeps.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "peerway/nic.h"

namespace pw::nic::held {
struct World;
}  // namespace pw::nic::held

struct pw_nic_memory {
  std::byte* address;
  uint64_t bytes;
  bool open;
};
struct pw_nic_peer {
  pw_nic* to;
};
struct pw_nic_remote {
  pw_nic* to;
  pw_nic_memory* memory;
};
struct pw_nic {
  pw::nic::held::World* world;
  uint32_t number;
  bool open = true;
  std::vector<std::unique_ptr<pw_nic_memory>> memories{};
  std::vector<std::pair<pw_nic_done*, pw_nic_status>> finished{};
};

namespace pw::nic::held {

struct Operation {
  pw_nic* from;
  pw_nic* to;
  bool is_put;
  std::byte* there;
  std::byte* here;
  uint64_t bytes;
  std::vector<std::byte> copied;  ///< of a put whose bytes were taken at once; of a get, what it read
  pw_nic_done* done;
  std::vector<uint64_t> parts{};  ///< of a put: words that have not arrived
  bool read = false;              ///< of a get
  bool over = false;
};

struct World {
  uint32_t states = 0, keeps = 0;  ///< guarantees
  uint32_t room = 64;              ///< operations of an endpoint
  bool whole = false;              ///< long puts arrive in two parts, for tests that try every order
  std::vector<std::unique_ptr<pw_nic>> nics;
  std::vector<std::unique_ptr<Operation>> operations;
  pw_nic* dead = nullptr;

  struct Event {
    Operation* operation;
    size_t part;
  };

  [[nodiscard]] bool behind_all(const Operation& it, bool puts, bool landed) const {
    for (const auto& other : operations) {
      if (other.get() == &it) return true;
      if (other->from == it.from && other->to == it.to && other->is_put == puts && !other->over &&
          (puts || landed))
        return false;
    }
    return true;
  }

  /// What may happen next.
  [[nodiscard]] std::vector<Event> possible() const {
    std::vector<Event> events;
    for (const auto& it : operations) {
      if (it->over) continue;
      if (it->is_put) {
        if ((keeps & PW_NIC_PUTS_IN_ORDER) != 0 && !behind_all(*it, true, true)) continue;
        for (size_t part = 0; part < it->parts.size(); ++part) events.push_back({it.get(), part});
      } else if (!it->read) {
        if ((keeps & PW_NIC_GETS_BEHIND_PUTS) == 0 || behind_all(*it, true, true))
          events.push_back({it.get(), 0});
      } else if (behind_all(*it, false, true)) {
        events.push_back({it.get(), 0});
      }
    }
    return events;
  }

  void happen(const Event& event) {
    Operation& it = *event.operation;
    if (it.is_put) {
      const uint64_t begin = it.parts[event.part];
      const uint64_t step = whole && it.bytes > 32 ? (it.bytes / 2 + 7) / 8 * 8 : sizeof(uint64_t);
      const uint64_t bytes = std::min(step, it.bytes - begin);
      std::memcpy(it.there + begin, (it.copied.empty() ? it.here : it.copied.data()) + begin, bytes);
      it.parts.erase(it.parts.begin() + static_cast<std::ptrdiff_t>(event.part));
      it.over = it.parts.empty();
    } else if (!it.read) {
      it.copied.assign(it.there, it.there + it.bytes);
      it.read = true;
    } else {
      std::memcpy(it.here, it.copied.data(), it.bytes);
      it.over = true;
    }
    if (it.over) finish(it, PW_NIC_OK);
  }

  void finish(Operation& it, pw_nic_status status) {
    if (it.done != nullptr) it.from->finished.emplace_back(it.done, status);
    std::erase_if(operations, [&](const auto& other) { return other.get() == &it; });
  }

  void kill(pw_nic* nic) {
    dead = nic;
    for (size_t i = operations.size(); i-- > 0;)
      if (operations[i]->to == nic || operations[i]->from == nic) finish(*operations[i], PW_NIC_UNREACHABLE);
  }
};

inline World* opening = nullptr;  ///< where open() goes

inline pw_nic_status post(pw_nic* nic, const pw_nic_remote* remote, uint64_t offset, void* data, bool copies,
                          uint64_t bytes, pw_nic_done* done, bool is_put) {
  World& world = *nic->world;
  if (remote->to == world.dead) return PW_NIC_UNREACHABLE;
  if (!remote->memory->open || offset > remote->memory->bytes || bytes > remote->memory->bytes - offset)
    return PW_NIC_INVALID;
  size_t mine = 0;
  for (const auto& each : world.operations) mine += each->from == nic;
  if (mine >= world.room) return PW_NIC_BUSY;
  auto it = std::make_unique<Operation>(Operation{nic,
                                                  remote->to,
                                                  is_put,
                                                  remote->memory->address + offset,
                                                  static_cast<std::byte*>(data),
                                                  bytes,
                                                  {},
                                                  done});
  if (is_put) {
    if (copies) it->copied.assign(it->here, it->here + bytes);
    const uint64_t step = world.whole && bytes > 32 ? (bytes / 2 + 7) / 8 * 8 : sizeof(uint64_t);
    for (uint64_t begin = 0; begin < bytes; begin += step) it->parts.push_back(begin);
  }
  world.operations.push_back(std::move(it));
  return PW_NIC_OK;
}

inline pw_nic_ops make_ops() {
  pw_nic_ops ops{};
  ops.abi = PW_NIC_ABI;
  ops.size = sizeof ops;
  ops.name = "held";
  ops.open = [](const pw_nic_options*, pw_nic** nic) {
    const auto number = static_cast<uint32_t>(opening->nics.size());
    opening->nics.push_back(std::make_unique<pw_nic>(pw_nic{opening, number}));
    *nic = opening->nics.back().get();
    return PW_NIC_OK;
  };
  ops.close = [](pw_nic* nic) { nic->open = false; };
  ops.query = [](pw_nic* nic, pw_nic_info* info) {
    info->guarantees = nic->world->states;
    info->memory_kinds = 1u << PW_NIC_HOST;
    info->largest = 1 << 20;
    info->copied = 256;
    info->number = nic->number;
    info->endpoints = 300;
  };
  ops.address = [](pw_nic* nic, pw_nic_address* address) {
    address->length = sizeof nic->number;
    std::memcpy(address->bytes, &nic->number, sizeof nic->number);
  };
  ops.why = [](pw_nic*) { return "the test said so"; };
  ops.connect = [](pw_nic* nic, const pw_nic_address* address, pw_nic_peer** peer) {
    uint32_t number = 0;
    std::memcpy(&number, address->bytes, sizeof number);
    *peer = new pw_nic_peer{nic->world->nics[number].get()};
    return PW_NIC_OK;
  };
  ops.disconnect = [](pw_nic*, pw_nic_peer* peer) { delete peer; };
  ops.register_memory = [](pw_nic* nic, const pw_nic_span* span, pw_nic_memory** memory, pw_nic_key* key) {
    nic->memories.push_back(std::make_unique<pw_nic_memory>(
        pw_nic_memory{static_cast<std::byte*>(span->address), span->bytes, true}));
    *memory = nic->memories.back().get();
    key->length = sizeof *memory;
    std::memcpy(key->bytes, memory, sizeof *memory);
    return PW_NIC_OK;
  };
  ops.deregister_memory = [](pw_nic* nic, pw_nic_memory* memory) {
    memory->open = false;
    auto& all = nic->world->operations;
    for (size_t i = all.size(); i-- > 0;) {
      Operation& it = *all[i];
      const auto inside = [&](pw_nic* owner, const std::byte* at) {
        return owner == nic && at >= memory->address && at < memory->address + memory->bytes;
      };
      if (inside(it.to, it.there) || (it.copied.empty() && inside(it.from, it.here)))
        nic->world->finish(it, PW_NIC_REFUSED);
    }
  };
  ops.import_key = [](pw_nic*, pw_nic_peer* peer, const pw_nic_key* key, pw_nic_remote** remote) {
    pw_nic_memory* memory = nullptr;
    if (key->length != sizeof memory) return PW_NIC_REFUSED;
    std::memcpy(&memory, key->bytes, sizeof memory);
    *remote = new pw_nic_remote{peer->to, memory};
    return PW_NIC_OK;
  };
  ops.release_key = [](pw_nic*, pw_nic_remote* remote) { delete remote; };
  ops.put = [](pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data, pw_nic_memory* memory,
               uint64_t bytes, pw_nic_done* done) {
    return post(nic, remote, offset, const_cast<void*>(data), memory == nullptr, bytes, done, true);
  };
  ops.get = [](pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data, pw_nic_memory*,
               uint64_t bytes,
               pw_nic_done* done) { return post(nic, remote, offset, data, false, bytes, done, false); };
  ops.progress = [](pw_nic* nic) {
    const auto finished = std::exchange(nic->finished, {});
    for (const auto& [done, status] : finished) done->call(done, status);
    return static_cast<unsigned>(finished.size());
  };
  return ops;
}

}  // namespace pw::nic::held
