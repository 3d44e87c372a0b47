// The receiving side of an exchange: handles acknowledgements, stores puts, answers gets.
#include <cstring>

#include "torus/exchange_parts.h"

namespace pw::torus {

unsigned Exchange::receive(uint64_t now) {
  wire_.flush();  // acknowledgements make room for what waits to be sent
  return wire_.receive([&](auto datagram, const sockaddr_in& from) { take_datagram(datagram, from, now); });
}

void Exchange::take_datagram(std::span<const std::byte> datagram, const sockaddr_in& from, uint64_t now) {
  Packet packet;
  const Header& header = packet.header;
  // A datagram from a stranger costs only these checks.
  if (!parse_packet(datagram, packet) || header.to != self_.number || !hooks_.sends_from(header.from, from) ||
      !is_sealed(datagram, key_)) {
    ++counters_.rejected;
    return;
  }
  if (header.to_session != self_.session)
    return;  // meant for an endpoint that had the number and the port
             // before
  if (header.kind == Kind::bye) {
    lose(header.from_session);
    return;
  }
  Flow* flow = flow_of(header.from, header.from_session, from, now);
  if (flow == nullptr) return;
  if (flow->number != header.from || flow->to.sin_addr.s_addr != from.sin_addr.s_addr ||
      flow->to.sin_port != from.sin_port) {
    ++counters_.rejected;
    return;
  }
  flow->heard_at = now;
  flow->silence.end();
  flow->must_answer = false;
  take_acknowledgement(*flow, header, now);
  flow->in.note(header.turn);
  if (header.kind == Kind::ping) flow->owes_ack = true;
  if (header.sequence == 0) return;
  flow->owes_ack = true;
  const bool is_new =
      flow->in.arrive(header.sequence, datagram, [&](auto in_order) { take_in_order(*flow, in_order); });
  if (!is_new) ++counters_.repeated;
}

void Exchange::take_acknowledgement(Flow& flow, const Header& header, uint64_t now) {
  flow.out.acknowledge(header.report, now, [&](const std::shared_ptr<void>& owner, const Datagram&) {
    auto* message = static_cast<Message*>(owner.get());
    if (--message->packets == 0 && message->cut == message->bytes && message->operation != nullptr)
      hooks_.complete(std::move(message->operation), PW_NIC_OK);
  });
}

// Bytes that the CPU stores must not overtake bytes that go to a GPU.
void Exchange::store(Flow& flow, const std::shared_ptr<Memory>& memory, std::byte* to,
                     std::span<const std::byte> bytes) {
  if (memory->kind == PW_NIC_CUDA) return flow.staged.store(memory, to, bytes);
  flow.staged.flush();
  copy_whole_words(to, bytes.data(), bytes.size());
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
  if (inside) store(flow, memory, memory->address + header.offset, packet.payload);
  if (!inside || flow.staged.failed()) ++counters_.refused;
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
  const auto entry = flow.gets.find(packet.header.id);
  if (entry == flow.gets.end()) return;
  Operation& get = *entry->second;
  const uint64_t bytes = packet.payload.size();
  pw_nic_status status = packet.header.kind == Kind::refused || !get.alive() ? PW_NIC_REFUSED : PW_NIC_OK;
  if (status == PW_NIC_OK) {
    const bool next = packet.header.offset == get.received && bytes <= get.bytes - get.received;
    if (next) store(flow, get.memory, get.local + get.received, packet.payload);
    get.received += bytes;
    if (next && get.received < get.bytes) return;
    flow.staged.flush();
    const bool lacks = get.memory->kind == PW_NIC_CUDA && flow.staged.failed();
    if (!next || lacks) status = PW_NIC_BROKEN;
  }
  OperationPointer operation = std::move(entry->second);
  flow.gets.erase(entry);
  hooks_.complete(std::move(operation), status);
}

}  // namespace pw::torus
