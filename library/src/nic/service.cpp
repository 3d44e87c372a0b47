#include "nic/service.h"

#include <algorithm>

#include "base/format.h"
#include "base/log.h"
#include "nic/control.h"
#include "nic/settle.h"

namespace pw::nic {

Service::~Service() {
  for (auto& client : clients_)
    if (!release(*client)) endpoint_.abandoned_.push_back(std::shared_ptr<Client>(std::move(client)));
}

bool Service::idle(const Client& client) {
  return std::ranges::none_of(client.tasks, [](const Task& task) { return task.state == State::getting; });
}

// Releases the client's keys and connection. Returns false if the NIC still has operations of the client.
bool Service::release(Client& client) {
  const bool done = settle(endpoint_.ops(), endpoint_.handle(), [&] { return idle(client); });
  for (const auto& [key, remote] : client.imported) endpoint_.ops().release_key(endpoint_.handle(), remote);
  client.imported.clear();
  client.connection.reset();
  return done;
}

unsigned Service::poll() {
  unsigned happened = look_for_clients();
  for (size_t i = 0; i < clients_.size();) {
    Client& client = *clients_[i];
    happened += serve(client);
    const bool replaced = known_[client.number] != client.first;
    if (!(replaced || client.broken) || !idle(client)) {
      ++i;
      continue;
    }
    release(client);
    clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return happened;
}

// Checks known clients every time; a new client is noticed within a few polls.
unsigned Service::look_for_clients() {
  constexpr uint32_t kPolls = 128;
  unsigned handled = 0;
  const auto endpoints = static_cast<uint32_t>(known_.size());
  for (uint32_t i = 0; i < std::min(kPolls, endpoints); ++i) {
    const uint32_t number = next_look_;
    next_look_ = next_look_ + 1 == endpoints ? 0 : next_look_ + 1;
    const uint64_t marker =
        std::atomic_ref(endpoint_.control_->place(number).marker).load(std::memory_order_acquire);
    const auto first = static_cast<uint32_t>(marker >> 32);
    if (first == known_[number]) continue;
    known_[number] = first;
    auto client = std::make_unique<Client>();
    client->number = number;
    client->first = first;
    for (Task& task : client->tasks) {
      task.client = client.get();
      task.call = landed;
    }
    clients_.push_back(std::move(client));
    ++handled;
  }
  return handled;
}

unsigned Service::serve(Client& client) {
  if (client.broken) return 0;
  unsigned happened = 0;
  while (client.taken < client.ended + kSlots && take_request(client)) ++happened;
  bool all_before_in_place = true;
  for (uint64_t number = client.ended; number < client.taken; ++number) {
    Task& task = client.tasks[number % kSlots];
    while (step(task, all_before_in_place)) ++happened;
    all_before_in_place &= task.state == State::to_answer || task.state == State::answered;
  }
  while (client.ended < client.taken && client.tasks[client.ended % kSlots].state == State::answered)
    ++client.ended;
  return happened;
}

// ---- read requests ----

bool Service::take_request(Client& client) {
  const uint64_t number = client.taken;
  NicMessage message;
  uint64_t* slot = endpoint_.control_->box(client.number).request[number % kSlots];
  if (client.broken || !message.read(slot, tag_of(client.first, number))) return false;
  Task& task = client.tasks[number % kSlots];
  task.request = number;
  task.status = PW_NIC_OK;
  task.state = State::to_answer;
  MessageReader reader(message);
  if (message.kind == RequestKind::hello)
    hello(client, reader);
  else if (client.connection == nullptr)
    client.broken = true;  // the first request must be a hello
  else if (message.kind == RequestKind::get)
    read_get(task, reader);
  else if (message.kind == RequestKind::store)
    read_store(task, reader);
  else
    task.status = PW_NIC_INVALID;
  ++client.taken;
  return !client.broken;
}

void Service::hello(Client& client, MessageReader& reader) try {
  EndpointFacts facts{};
  facts.address = reader.next_name<pw_nic_address>();
  facts.control = reader.next_name<pw_nic_key>();
  facts.number = reader.next();
  if (facts.number != client.number)
    throw Error(PW_BAD_KEY, format("it says that it is endpoint {}", facts.number));
  facts.endpoints = reader.next();
  facts.guarantees = reader.next();
  client.connection = endpoint_.connect(facts);
} catch (const Error& error) {
  log(LogLevel::warning, format("endpoint {} asks, but {}", client.number, error.what()));
  client.broken = true;
}

// Finds the memory that the bytes must go to, if this process registered it.
pw_nic_status Service::find(Task& task, const pw_nic_key& key) {
  task.to = endpoint_.find(key);
  if (task.to == nullptr) return PW_NIC_REFUSED;
  const uint64_t size = task.to->span().bytes;
  return task.offset <= size && task.bytes <= size - task.offset ? PW_NIC_OK : PW_NIC_INVALID;
}

void Service::read_get(Task& task, MessageReader& reader) {
  const auto to = reader.next_name<pw_nic_key>();
  task.offset = reader.next_long();
  task.bytes = reader.next_long();
  const auto from = reader.next_name<pw_nic_key>();
  task.from_offset = reader.next_long();
  task.status = task.bytes <= endpoint_.info().largest ? find(task, to) : PW_NIC_INVALID;
  if (task.status == PW_NIC_OK) task.from = import(*task.client, from, task.status);
  if (task.status == PW_NIC_OK) task.state = State::to_get;
}

void Service::read_store(Task& task, MessageReader& reader) {
  const auto to = reader.next_name<pw_nic_key>();
  task.offset = reader.next_long();
  task.bytes = sizeof(uint64_t);
  task.value = reader.next_long();
  task.from = task.client->connection->control();
  task.from_offset = reader.next_long();
  task.status = find(task, to);
  if (task.status == PW_NIC_OK && task.offset % sizeof(uint64_t) != 0) task.status = PW_NIC_INVALID;
  if (task.status == PW_NIC_OK) task.state = State::to_store;
}

// Keeps imported keys, because few keys are used again and again.
pw_nic_remote* Service::import(Client& client, const pw_nic_key& key, pw_nic_status& status) {
  constexpr size_t kKept = 64;
  if (equal(key, client.connection->facts().control)) return client.connection->control();
  for (const auto& [known, remote] : client.imported)
    if (equal(known, key)) return remote;
  if (client.imported.size() >= kKept && client.taken == client.ended) {
    endpoint_.ops().release_key(endpoint_.handle(), client.imported.front().second);
    client.imported.erase(client.imported.begin());
  }
  pw_nic_remote* remote = nullptr;
  status = endpoint_.ops().import_key(endpoint_.handle(), client.connection->peer(), &key, &remote);
  if (status == PW_NIC_OK) client.imported.emplace_back(key, remote);
  return remote;
}

// ---- serve requests ----

/// Returns whether the task made progress.
bool Service::step(Task& task, bool all_before_in_place) {
  switch (task.state) {
    case State::to_get:
      return get(task);
    case State::to_store: {
      if (!all_before_in_place) return false;
      if (task.to->span().kind != PW_NIC_HOST) return get(task);
      auto* word =
          reinterpret_cast<uint64_t*>(static_cast<std::byte*>(task.to->span().address) + task.offset);
      std::atomic_ref(*word).store(task.value, std::memory_order_release);
      task.state = State::to_answer;
      return true;
    }
    case State::to_answer:
      return answer(task);
    case State::getting:
    case State::answered:
      return false;
  }
  return false;
}

bool Service::get(Task& task) {
  const State before = std::exchange(task.state, State::getting);
  auto* to = static_cast<std::byte*>(task.to->span().address) + task.offset;
  const pw_nic_status status = endpoint_.ops().get(endpoint_.handle(), task.from, task.from_offset, to,
                                                   task.to->handle(), task.bytes, &task);
  if (status == PW_NIC_OK) return true;
  task.status = status == PW_NIC_BUSY ? PW_NIC_OK : status;
  task.state = status == PW_NIC_BUSY ? before : State::to_answer;
  return status != PW_NIC_BUSY;
}

void Service::landed(pw_nic_done* done, pw_nic_status status) {
  auto* task = static_cast<Task*>(done);
  task->status = status;
  task->state = State::to_answer;
}

bool Service::answer(Task& task) {
  Client& client = *task.client;
  const uint64_t word = answer_word(tag_of(client.first, task.request), task.status);
  const uint64_t to = ControlSpan::box_at(client.connection->facts().endpoints, endpoint_.info().number) +
                      offsetof(Box, answer) + task.request % kSlots * sizeof word;
  const pw_nic_status status = endpoint_.ops().put(endpoint_.handle(), client.connection->control(), to,
                                                   &word, nullptr, sizeof word, nullptr);
  if (status == PW_NIC_BUSY) return false;
  client.broken |= status != PW_NIC_OK;  // nobody is there to receive the answer
  task.state = State::answered;
  return true;
}

// Refuses all tasks that have not started yet and use this memory.
void Service::forget(const Memory& memory) {
  for (const auto& client : clients_)
    for (Task& task : client->tasks)
      if (task.to == &memory && (task.state == State::to_get || task.state == State::to_store)) {
        task.state = State::to_answer;
        task.status = PW_NIC_REFUSED;
      }
}

}  // namespace pw::nic
