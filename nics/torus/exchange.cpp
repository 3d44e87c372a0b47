#include "torus/exchange.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "torus/gpu.h"

namespace pw::torus {
namespace {

constexpr uint64_t kPatience = 1'500'000'000;  ///< with a peer that does not answer
constexpr uint64_t kPingEvery = 100'000'000;

bool load(const Memory* memory, std::byte* to, const std::byte* from, uint64_t bytes) {
  if (memory != nullptr && memory->kind == PW_NIC_CUDA) return gpu_copy(to, from, bytes, memory->device);
  copy_whole_words(to, from, bytes);
  return true;
}

bool store(const Memory& memory, std::byte* to, const std::byte* from, uint64_t bytes) {
  if (memory.kind == PW_NIC_CUDA) return gpu_copy(to, from, bytes, memory.device);
  copy_whole_words(to, from, bytes);
  return true;
}

}  // namespace

/// What is cut into packets: a put, the request for a get, or the answer to one.
struct Exchange::Message {
  Kind kind;
  Header header;                   ///< what all its packets have in common
  std::shared_ptr<Memory> memory;  ///< where the bytes lie; null: nowhere, or copied in the operation
  const std::byte* from = nullptr;
  uint64_t bytes = 0, cut = 0;
  uint32_t packets = 0;        ///< under way
  OperationPointer operation;  ///< of a put
};

struct Exchange::Flow {
  uint32_t number;
  uint64_t session;
  sockaddr_in to;
  uint64_t heard;
  const Seat* seat = nullptr;  ///< when its process is of this host: somebody else tells when it dies
  uint64_t wanting = 0;        ///< since when something is expected of it; 0: nothing is
  uint64_t pinged = 0;
  bool owes_ack = false;
  SendWindow out;
  ReceiveWindow in;
  std::deque<std::shared_ptr<Message>> queue;
  std::map<uint64_t, OperationPointer> gets;

  [[nodiscard]] bool quiet() const { return out.empty() && queue.empty() && gets.empty(); }
};

Exchange::Exchange(const Place& self, const Secret& key, Wire& wire, Counters& counters, Hooks hooks)
    : self_(self), key_(key), wire_(wire), counters_(counters), hooks_(std::move(hooks)) {}

Exchange::~Exchange() = default;

Exchange::Flow* Exchange::flow_of(uint32_t number, uint64_t session, const sockaddr_in& to, uint64_t now) {
  if (session <= gone_[number]) return nullptr;
  auto found = flows_.find(number);
  if (found != flows_.end() && found->second->session < session) {  // the number has a new owner
    lose(number, found->second->session);
    found = flows_.end();
  }
  if (found != flows_.end()) return found->second->session == session ? found->second.get() : nullptr;
  auto flow = std::make_unique<Flow>();
  flow->number = number;
  flow->session = session;
  flow->to = to;
  flow->heard = now;
  return (flows_[number] = std::move(flow)).get();
}

Header Exchange::header_to(const Flow& flow, Kind kind) const {
  Header header{};
  header.kind = kind;
  header.from = self_.number;
  header.to = flow.number;
  header.from_session = self_.session;
  header.to_session = flow.session;
  return header;
}

void Exchange::start(OperationPointer operation, uint64_t now) {
  const Place& place = operation->peer->place;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = place.ip;
  to.sin_port = place.port;
  Flow* flow = flow_of(place.number, place.session, to, now);
  if (flow == nullptr) {
    hooks_.complete(std::move(operation), PW_NIC_UNREACHABLE);
    return;
  }
  flow->seat = operation->peer->seat;
  auto message = std::make_shared<Message>();
  message->kind = operation->put ? Kind::put : Kind::get;
  message->header = header_to(*flow, message->kind);
  message->header.slot = operation->reach->key().slot;
  message->header.generation = operation->reach->key().generation;
  message->header.offset = operation->offset;
  if (operation->put) {
    message->memory = operation->memory;
    message->from = operation->local;
    message->bytes = operation->bytes;
    message->operation = std::move(operation);
  } else {
    message->header.total = operation->bytes;
    message->header.id = next_id_++;
    flow->gets[message->header.id] = std::move(operation);
  }
  flow->queue.push_back(std::move(message));
  cut(*flow, now);
}

// Turns messages into packets while the window has room.
void Exchange::cut(Flow& flow, uint64_t now) {
  while (!flow.queue.empty() && flow.out.room()) {
    const std::shared_ptr<Message> message = flow.queue.front();
    const uint64_t bytes = std::min<uint64_t>(kMostPayload, message->bytes - message->cut);
    Header header = message->header;
    Datagram datagram(sizeof header + bytes);
    const bool there = message->memory == nullptr || message->memory->alive;
    if (!there ||
        !load(message->memory.get(), datagram.data() + sizeof header, message->from + message->cut, bytes)) {
      flow.queue.pop_front();
      if (message->operation != nullptr) {  // packets on their way still refer to the message
        hooks_.complete(std::move(message->operation), PW_NIC_REFUSED);
        continue;
      }
      header.kind = Kind::refused;
      datagram.resize(sizeof header);
    } else {
      header.offset += message->cut;
      header.bytes = static_cast<uint16_t>(bytes);
      message->cut += bytes;
      if (message->cut == message->bytes) flow.queue.pop_front();
    }
    header.sequence = flow.out.next_sequence();
    std::memcpy(datagram.data(), &header, sizeof header);
    ++message->packets;
    transmit(flow, flow.out.push(std::move(datagram), message, now));
  }
}

void Exchange::transmit(Flow& flow, Datagram& datagram) {
  Header header;
  std::memcpy(&header, datagram.data(), sizeof header);
  flow.in.report(header);
  std::memcpy(datagram.data(), &header, sizeof header);
  seal(datagram, key_);
  wire_.send(flow.to, datagram);
  flow.owes_ack = false;
}

void Exchange::send_bare(Flow& flow, Kind kind) {
  const Header header = header_to(flow, kind);
  std::array<std::byte, sizeof header> datagram;
  Header full = header;
  flow.in.report(full);
  std::memcpy(datagram.data(), &full, sizeof full);
  seal(datagram, key_);
  wire_.send_copy(flow.to, datagram);
  flow.owes_ack = false;
}

unsigned Exchange::receive(uint64_t now) {
  wire_.flush();  // acknowledgements free what waits to be sent
  return wire_.receive([&](auto datagram, const sockaddr_in& from) { take_datagram(datagram, from, now); });
}

void Exchange::take_datagram(std::span<const std::byte> datagram, const sockaddr_in& from, uint64_t now) {
  Packet packet;
  if (!open_packet(datagram, key_, packet) || packet.header.to != self_.number) {
    ++counters_.rejected;
    return;
  }
  const Header& header = packet.header;
  if (header.to_session != self_.session) return;  // for one who had the number and the port before
  if (header.kind == Kind::bye) {
    lose(header.from, header.from_session);
    return;
  }
  Flow* flow = flow_of(header.from, header.from_session, from, now);
  if (flow == nullptr) return;
  flow->heard = now;
  take_acknowledgement(*flow, header, now);
  if (header.kind == Kind::ping) flow->owes_ack = true;
  if (header.sequence == 0) return;
  flow->owes_ack = true;
  const bool is_new =
      flow->in.arrive(header.sequence, datagram, [&](auto in_order) { take_in_order(*flow, in_order); });
  if (!is_new) ++counters_.repeated;
}

void Exchange::take_acknowledgement(Flow& flow, const Header& header, uint64_t now) {
  flow.out.acknowledge(
      header.acknowledged, header.arrived, now, [&](const std::shared_ptr<void>& owner, const Datagram&) {
        auto* message = static_cast<Message*>(owner.get());
        if (--message->packets == 0 && message->cut == message->bytes && message->operation != nullptr)
          hooks_.complete(std::move(message->operation), PW_NIC_OK);
      });
}

void Exchange::take_in_order(Flow& flow, std::span<const std::byte> datagram) {
  Packet packet;
  if (!parse_packet(datagram, packet)) return;
  const Header& header = packet.header;
  if (header.kind == Kind::get) return take_get(flow, header);
  if (header.kind != Kind::put) return take_data(flow, packet);
  const auto memory = hooks_.find(header.slot, header.generation);
  const bool inside =
      memory != nullptr && header.offset <= memory->bytes && header.bytes <= memory->bytes - header.offset;
  if (!inside || !store(*memory, memory->address + header.offset, packet.payload.data(), header.bytes))
    ++counters_.refused;
}

void Exchange::take_get(Flow& flow, const Header& header) {
  const auto memory = hooks_.find(header.slot, header.generation);
  const bool inside =
      memory != nullptr && header.offset <= memory->bytes && header.total <= memory->bytes - header.offset;
  auto answer = std::make_shared<Message>();
  answer->kind = inside ? Kind::data : Kind::refused;
  answer->header = header_to(flow, answer->kind);
  answer->header.id = header.id;
  if (inside) {
    answer->memory = memory;
    answer->from = memory->address + header.offset;
    answer->bytes = header.total;
  } else {
    ++counters_.refused;
  }
  flow.queue.push_back(std::move(answer));
}

void Exchange::take_data(Flow& flow, const Packet& packet) {
  const auto found = flow.gets.find(packet.header.id);
  if (found == flow.gets.end()) return;
  Operation& get = *found->second;
  const uint64_t bytes = packet.payload.size();
  pw_nic_status status = packet.header.kind == Kind::refused || !get.alive() ? PW_NIC_REFUSED : PW_NIC_OK;
  if (status == PW_NIC_OK) {
    const bool next = packet.header.offset == get.received && bytes <= get.bytes - get.received;
    if (!next || !store(*get.memory, get.local + get.received, packet.payload.data(), bytes))
      status = PW_NIC_BROKEN;
    get.received += bytes;
    if (status == PW_NIC_OK && get.received < get.bytes) return;
  }
  OperationPointer operation = std::move(found->second);
  flow.gets.erase(found);
  hooks_.complete(std::move(operation), status);
}

uint64_t Exchange::attend(uint64_t now) {
  uint64_t next = UINT64_MAX;
  std::vector<std::pair<uint32_t, uint64_t>> lost;
  for (auto& [number, flow] : flows_) {
    flow->out.resend(now, [&](Datagram& datagram) {
      ++counters_.again;
      transmit(*flow, datagram);
    });
    cut(*flow, now);
    if (silent(*flow, now)) lost.emplace_back(number, flow->session);
    if (flow->owes_ack) send_bare(*flow, Kind::ack);
    next = std::min(next, flow->out.next_timer());
    if (flow->wanting != 0) next = std::min(next, now + kPingEvery);
  }
  wire_.flush();
  for (const auto& [number, session] : lost) lose(number, session);
  return next;
}

// Whether a peer that owes us something has been silent for too long. It may have died after it acknowledged
// the request of a get, so it is asked now and then.
bool Exchange::silent(Flow& flow, uint64_t now) {
  if (flow.quiet()) {
    flow.wanting = 0;
    return false;
  }
  if (flow.wanting == 0) flow.wanting = now;
  if (flow.seat != nullptr) return flow.seat->session.load(std::memory_order_acquire) != flow.session;
  if (now > std::max(flow.heard, flow.wanting) + kPatience) return true;
  if (flow.out.empty() && now > std::max({flow.heard, flow.wanting, flow.pinged}) + kPingEvery) {
    flow.pinged = now;
    send_bare(flow, Kind::ping);
  }
  return false;
}

void Exchange::lose(uint32_t number, uint64_t session) {
  wire_.flush();
  gone_[number] = std::max(gone_[number], session);
  const auto found = flows_.find(number);
  if (found != flows_.end() && found->second->session <= session) {
    const std::unique_ptr<Flow> flow = std::move(found->second);
    flows_.erase(found);
    const auto end = [&](OperationPointer& operation) {
      if (operation != nullptr) hooks_.complete(std::move(operation), PW_NIC_UNREACHABLE);
    };
    constexpr std::array<uint64_t, 4> kNone{};
    flow->out.acknowledge(flow->out.next_sequence() - 1, kNone, flow->heard,
                          [&](const std::shared_ptr<void>& owner, const Datagram&) {
                            end(static_cast<Message*>(owner.get())->operation);
                          });
    for (const auto& message : flow->queue) end(message->operation);
    for (auto& [id, get] : flow->gets) end(get);
  }
  hooks_.lost(number, session);
}

bool Exchange::idle() const {
  return std::all_of(flows_.begin(), flows_.end(), [](const auto& entry) { return entry.second->quiet(); });
}

void Exchange::say_goodbye() {
  for (auto& [number, flow] : flows_) send_bare(*flow, Kind::bye);
  while (!flows_.empty()) lose(flows_.begin()->first, flows_.begin()->second->session);
  wire_.flush();
}

}  // namespace pw::torus
