#include "torus/exchange.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "torus/exchange_parts.h"

namespace pw::torus {
namespace {

constexpr uint64_t kPingEvery = 100'000'000;
constexpr unsigned kAtOnce = 64, kTrain = 16;  ///< packets

}  // namespace

Exchange::Exchange(const EndpointAddress& self, const Secret& key, Wire& wire, Counters& counters,
                   Hooks hooks)
    : self_(self), key_(key), wire_(wire), counters_(counters), hooks_(std::move(hooks)) {}

Exchange::~Exchange() = default;

Exchange::Flow* Exchange::flow_of(uint32_t number, uint64_t session, const sockaddr_in& to, uint64_t now) {
  if (gone_.contains(session)) return nullptr;
  if (const auto flow_entry = flows_.find(session); flow_entry != flows_.end())
    return flow_entry->second.get();
  for (auto& [other, flow] : flows_) flow->must_answer |= flow->number == number;
  auto flow = std::make_unique<Flow>();
  flow->number = number;
  flow->session = session;
  flow->to = to;
  flow->heard_at = now;
  return (flows_[session] = std::move(flow)).get();
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
  const EndpointAddress& place = operation->peer->place;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = place.ip;
  to.sin_port = place.port != 0 ? place.port : operation->peer->entry->port.load();
  Flow* flow = flow_of(place.number, place.session, to, now);
  if (flow == nullptr) {
    hooks_.complete(std::move(operation), PW_NIC_UNREACHABLE);
    return;
  }
  flow->entry = operation->peer->entry;
  auto message = std::make_shared<Message>();
  message->kind = operation->put ? Kind::put : Kind::get;
  message->header = header_to(*flow, message->kind);
  message->header.slot = operation->target->key().slot;
  message->header.generation = operation->target->key().generation;
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
}

// Copies the next bytes of a message.
bool Exchange::load(Message& message, std::byte* to, uint64_t bytes) {
  const Memory* memory = message.memory.get();
  const std::byte* from = message.from + message.cut;
  if (memory != nullptr && !memory->alive) return false;
  if (memory != nullptr && memory->kind == PW_NIC_CUDA)
    return message.staged.load(*memory, to, from, bytes, message.bytes - message.cut);
  copy_whole_words(to, from, bytes);
  return true;
}

// Cuts messages into packets while the window has room, but not for long, because arriving datagrams wait.
// Returns whether there is more to do.
bool Exchange::cut(Flow& flow, uint64_t now) {
  for (unsigned count = 0; !flow.queue.empty() && flow.out.room(); ++count) {
    if (count == kAtOnce) return true;
    if (count % kTrain == kTrain - 1) wire_.flush();  // so that the peer can work meanwhile
    const std::shared_ptr<Message> message = flow.queue.front();
    const uint64_t bytes = std::min<uint64_t>(kMostPayload, message->bytes - message->cut);
    Header header = message->header;
    Datagram datagram(sizeof header + bytes);
    if (!load(*message, datagram.data() + sizeof header, bytes)) {
      flow.queue.pop_front();
      if (message->operation != nullptr) {  // packets under way still refer to the message
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
  return false;
}

void Exchange::transmit(Flow& flow, Datagram& datagram) {
  Header header;
  std::memcpy(&header, datagram.data(), sizeof header);
  header.turn = flow.out.turn();
  header.report = flow.in.report();
  std::memcpy(datagram.data(), &header, sizeof header);
  seal(datagram, key_);
  wire_.send(flow.to, datagram);
  flow.owes_ack = false;
}

void Exchange::send_bare(Flow& flow, Kind kind, uint64_t turn) {
  Header header = header_to(flow, kind);
  header.turn = turn;
  header.report = flow.in.report();
  std::array<std::byte, sizeof header> datagram;
  std::memcpy(datagram.data(), &header, sizeof header);
  seal(datagram, key_);
  wire_.send_copy(flow.to, datagram);
  flow.owes_ack = false;
}

uint64_t Exchange::attend(uint64_t now) {
  uint64_t next = UINT64_MAX;
  std::vector<uint64_t> lost;
  for (auto& [session, owned] : flows_) {
    Flow& flow = *owned;
    flow.staged.flush();
    flow.out.resend(now, [&](Datagram& datagram) {
      ++counters_.again;
      transmit(flow, datagram);
    });
    if (cut(flow, now)) next = now;
    if (flow.out.ask(now, flow.queue.empty())) send_bare(flow, Kind::ping, flow.out.turn());
    if (silent(flow, now)) lost.push_back(session);
    if (flow.owes_ack) send_bare(flow, Kind::ack);
    next = std::min(next, flow.out.next_timer());
    if (flow.waiting_since != 0) next = std::min(next, now + kPingEvery);
  }
  wire_.flush();
  for (const uint64_t session : lost) lose(session);
  return next;
}

// Whether an answer is expected from the peer, and it has been silent for too long. A peer may die after it
// acknowledged the request of a get, when nothing would be sent to it any more, so it gets a ping now and
// then.
bool Exchange::silent(Flow& flow, uint64_t now) {
  if (!flow.expects_answer()) {
    flow.waiting_since = 0;
    flow.silence.end();
    return false;
  }
  if (flow.waiting_since == 0) flow.waiting_since = now;
  if (flow.entry != nullptr) return flow.entry->session.load(std::memory_order_acquire) != flow.session;
  if (flow.silence.goes_on(now)) return true;
  if (flow.out.empty() && now > std::max({flow.heard_at, flow.waiting_since, flow.pinged_at}) + kPingEvery) {
    flow.pinged_at = now;
    send_bare(flow, Kind::ping);
  }
  return false;
}

void Exchange::lose(uint64_t session) {
  wire_.flush();
  gone_.insert(session);
  const auto flow_entry = flows_.find(session);
  if (flow_entry != flows_.end()) {
    const std::unique_ptr<Flow> flow = std::move(flow_entry->second);
    flows_.erase(flow_entry);
    const auto end = [&](OperationPointer& operation) {
      if (operation != nullptr) hooks_.complete(std::move(operation), PW_NIC_UNREACHABLE);
    };
    flow->out.acknowledge({flow->out.next_sequence() - 1, {}, 0}, flow->heard_at,
                          [&](const std::shared_ptr<void>& owner, const Datagram&) {
                            end(static_cast<Message*>(owner.get())->operation);
                          });
    for (const auto& message : flow->queue) end(message->operation);
    for (auto& [id, get] : flow->gets) end(get);
  }
  hooks_.lost(session);
}

bool Exchange::idle() const {
  return std::all_of(flows_.begin(), flows_.end(), [](const auto& entry) { return entry.second->quiet(); });
}

void Exchange::say_goodbye() {
  for (auto& [session, flow] : flows_) send_bare(*flow, Kind::bye);
  while (!flows_.empty()) lose(flows_.begin()->first);
  wire_.flush();
}

}  // namespace pw::torus
