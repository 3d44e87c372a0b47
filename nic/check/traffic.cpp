#include "nic/check/traffic.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "nic/check/random.h"
#include "nic/check/stays.h"

namespace pw::nic::check {
namespace {

constexpr uint64_t kCellBytes = 16384, kCells = 15, kBegin = 4096, kMargin = 64;
constexpr auto kAfterDone = std::byte{0xEE};  ///< stored in a source once the source is free

/// A piece of a target's memory that only this process writes, with one operation at a time.
struct Cell {
  enum class State : uint8_t { idle, putting, getting };
  State state = State::idle;
  uint32_t target = 0;
  uint64_t there = 0;               ///< its offset in the memory that the target registered
  const std::byte* view = nullptr;  ///< the same memory, mapped in this process
  std::byte *source = nullptr, *landing = nullptr;
  pw_nic_memory** memory = nullptr;  ///< the memory of both
  std::vector<std::byte> model = std::vector<std::byte>(kCellBytes, kPoison);
  uint64_t offset = 0, bytes = 0, here = 0, number = 0;
  Done* done = nullptr;
  bool ended = true;
  pw_nic_status status = PW_NIC_OK;
  Deadline deadline;
};

/// The memory registered here for the cells of one target.
struct Group {
  std::vector<std::byte> room = std::vector<std::byte>(2 * kCells * kCellBytes + 64);  // and for fetch_add()
  pw_nic_memory* memory = nullptr;
  pw_nic_remote* remote = nullptr;
  pw_nic_peer* peer = nullptr;
  std::vector<Cell> cells;
};

class Traffic {
 public:
  Traffic(End& end, const Stand& stand, uint32_t rank, const Places& places)
      : end_(end),
        stand_(stand),
        rank_(rank),
        places_(places),
        random_(places.seed * 31 + rank),
        groups_(kRanks) {
    for (uint32_t target = 0; target < kRanks; ++target)
      if (places.there[target] != 0) make(groups_[target], target);
  }

  Moved run() {
    const uint64_t deadline = deadline_after(places_.share_ns);
    while (now_ns() < deadline) turn(true);
    while (busy()) turn(false);
    end_.drain("of random traffic");
    for (Group& group : groups_) {
      if (group.peer == nullptr) continue;
      end_.release(group.remote);
      end_.remove(group.memory);
      end_.disconnect(group.peer);
    }
    return moved_;
  }

 private:
  void make(Group& group, uint32_t target) {
    group.peer = end_.connect(places_.address[target]);
    group.remote = end_.import(group.peer, places_.key[target]);
    enter(group);
    for (uint64_t i = 0; i < kCells; ++i) {
      Cell& cell = group.cells.emplace_back();
      cell.target = target;
      cell.there = kBegin + (rank_ * kCells + i) * kCellBytes;
      cell.view = stand_.arena[target].at(cell.there);
      cell.source = group.room.data() + i * kCellBytes;
      cell.landing = group.room.data() + (kCells + i) * kCellBytes;
      cell.memory = &group.memory;
    }
  }
  void enter(Group& group) {
    pw_nic_span span{};
    span.size = sizeof span;
    span.address = group.room.data();
    span.bytes = group.room.size();
    span.descriptor = -1;
    pw_nic_key key{};
    group.memory = end_.add(span, key);
  }

  [[nodiscard]] bool busy() const {
    for (const Group& group : groups_)
      for (const Cell& cell : group.cells)
        if (cell.state != Cell::State::idle) return true;
    return false;
  }

  void turn(bool starts) {
    for (Group& group : groups_) {
      bool idle = true;
      for (Cell& cell : group.cells) {
        if (cell.state == Cell::State::putting) look_for_put(cell);
        if (cell.state == Cell::State::getting) look_for_get(cell);
        if (cell.state == Cell::State::idle && starts && !random_.one_in(4)) start(group, cell);
        idle &= cell.state == Cell::State::idle;
      }
      if (idle && group.peer != nullptr && !adding_ && random_.one_in(8)) renew(group);
    }
    if (starts) add();
    end_.progress();
  }

  // Memory is deregistered and registered again, and a key is imported a second time, while other operations
  // go on.
  void renew(Group& group) {
    end_.remove(group.memory);
    enter(group);
    end_.release(end_.import(group.peer, places_.key[group.cells.front().target]));
    ++moved_.renewals;
  }

  uint64_t size() {
    const uint64_t around[] = {1, 8, 64, 256, 4096, end_.info().copied, kCellBytes};
    uint64_t bytes = 0;
    switch (random_.below(3)) {
      case 0:
        bytes = random_.between(1, 80);
        break;
      case 1:
        bytes = around[random_.below(std::size(around))] + random_.below(3) - 1;
        break;
      default:
        bytes = random_.between(1, kCellBytes);
        break;
    }
    return std::clamp<uint64_t>(bytes, 1, std::min(kCellBytes, end_.info().largest));
  }

  void start(Group& group, Cell& cell) {
    cell.bytes = size();
    cell.offset = random_.below(kCellBytes - cell.bytes + 1);
    cell.here = random_.below(kCellBytes - cell.bytes + 1);
    cell.done = &end_.fresh();
    cell.done->context = &cell;
    cell.done->then = [](Done& done) {
      Cell& of = *static_cast<Cell*>(done.context);
      of.ended = true;
      of.status = done.status;
      if (of.state == Cell::State::putting)
        std::memset(of.source + of.here, static_cast<int>(kAfterDone), of.bytes);
    };
    cell.deadline = Deadline();
    if (random_.one_in(3))
      start_get(group, cell);
    else
      start_put(group, cell);
  }

  void start_put(Group& group, Cell& cell) {
    fill(cell.source + cell.here, cell.bytes, places_.seed + ++started_ * kRanks + rank_);
    const std::vector<std::byte> bytes(cell.source + cell.here, cell.source + cell.here + cell.bytes);
    const bool copied = cell.bytes <= end_.info().copied && random_.one_in(2);
    cell.state = Cell::State::putting;
    cell.ended = false;
    const pw_nic_status status =
        end_.try_put({group.remote, cell.there + cell.offset, cell.source + cell.here,
                      copied ? nullptr : group.memory, cell.bytes},
                     cell.done);
    if (!accepted(cell, status, "put")) return;
    if (copied) std::memset(cell.source + cell.here, static_cast<int>(kAfterDone), cell.bytes);
    std::copy(bytes.begin(), bytes.end(), cell.model.begin() + static_cast<std::ptrdiff_t>(cell.offset));
    cell.number = ++moved_.puts;
  }

  void start_get(Group& group, Cell& cell) {
    std::memset(cell.landing, static_cast<int>(kAfterDone), kCellBytes);
    cell.state = Cell::State::getting;
    cell.ended = false;
    const pw_nic_status status = end_.try_get(
        {group.remote, cell.there + cell.offset, cell.landing + cell.here, group.memory, cell.bytes},
        cell.done);
    if (accepted(cell, status, "get")) cell.number = ++moved_.gets;
  }

  bool accepted(Cell& cell, pw_nic_status status, const char* operation) {
    if (status == PW_NIC_OK) return true;
    cell.state = Cell::State::idle;
    if (status == PW_NIC_BUSY) end_.give_back(*cell.done);
    if (status != PW_NIC_BUSY) demand(status, end_, format("a {} of {}", operation, place(cell)));
    return false;
  }

  [[nodiscard]] std::string place(const Cell& cell) const {
    return format("{} bytes at offset {} of process {}", cell.bytes, cell.there + cell.offset, cell.target);
  }

  void look_for_put(Cell& cell) {
    const uint64_t first = cell.offset < kMargin ? 0 : cell.offset - kMargin;
    const uint64_t last = std::min(kCellBytes, cell.offset + cell.bytes + kMargin);
    const bool whole = random_.one_in(16);
    const uint64_t from = whole ? 0 : first, bytes = whole ? kCellBytes : last - first;
    if (std::memcmp(cell.view + from, cell.model.data() + from, bytes) == 0) {
      if (!cell.ended) return late(cell, "a put");
      if (cell.status != PW_NIC_OK) demand(cell.status, end_, "a put of " + place(cell));
      cell.state = Cell::State::idle;
      return;
    }
    if (!cell.deadline.passed()) return;
    const auto at = static_cast<uint64_t>(
        std::mismatch(cell.model.begin(), cell.model.end(), cell.view).first - cell.model.begin());
    if (at == kCellBytes) return;
    const bool after = cell.view[at] == kAfterDone && at >= cell.offset && at < cell.offset + cell.bytes;
    throw Broken{format(
        "{}: put number {} of process {}, {}: the byte at {} is {:#x}, {:#x} was put, and {} later puts "
        "were started",
        after ? "what was stored in `data` after the done of its put has arrived"
              : "a put has not arrived, or not where it should",
        cell.number, rank_, place(cell), cell.there + at, static_cast<int>(cell.view[at]),
        static_cast<int>(cell.model[at]), moved_.puts - cell.number)};
  }

  void look_for_get(Cell& cell) {
    if (!cell.ended) return late(cell, "a get");
    if (cell.status != PW_NIC_OK) demand(cell.status, end_, "a get of " + place(cell));
    for (uint64_t i = 0; i < kCellBytes; ++i) {
      const bool inside = i >= cell.here && i < cell.here + cell.bytes;
      const std::byte wanted = inside ? cell.model[cell.offset + i - cell.here] : kAfterDone;
      if (cell.landing[i] != wanted)
        throw Broken{
            format("after the done of get number {} of process {}, {} to offset {}, the byte at {} is {:#x} "
                   "where {:#x} should be",
                   cell.number, rank_, place(cell), cell.here, i, static_cast<int>(cell.landing[i]),
                   static_cast<int>(wanted))};
    }
    cell.state = Cell::State::idle;
  }

  void late(const Cell& cell, const char* operation) const {
    if (!cell.deadline.passed()) return;
    throw Broken{format("the done of {} of {} was not called; {} later operations were started", operation,
                        place(cell), moved_.puts + moved_.gets - cell.number)};
  }

  void add() {
    Group& group = groups_[0];
    if (end_.ops().fetch_add == nullptr || group.peer == nullptr || adding_) return;
    Done& done = end_.fresh();
    done.context = this;
    done.then = [](Done& ended) { static_cast<Traffic*>(ended.context)->adding_ = false; };
    adding_ = true;
    auto* before = reinterpret_cast<uint64_t*>(group.room.data() + 2 * kCells * kCellBytes);
    const pw_nic_status status = end_.attempt("fetch_add", &done, [&] {
      return end_.ops().fetch_add(end_.nic(), group.remote, kSumWord, 1, before, group.memory, &done);
    });
    if (status == PW_NIC_OK)
      ++moved_.adds;
    else
      adding_ = false;
    if (status == PW_NIC_BUSY) end_.give_back(done);
  }

  End& end_;
  const Stand& stand_;
  const uint32_t rank_;
  const Places& places_;
  Random random_;
  std::vector<Group> groups_;
  Moved moved_;
  uint64_t started_ = 0;
  bool adding_ = false;
};

}  // namespace

Bytes pack(const Places& places) {
  ByteWriter writer;
  writer.put(std::as_bytes(std::span(&places, 1)));
  return writer.take();
}

Places unpack_places(const Bytes& bytes) {
  ByteReader reader(bytes, "the places of traffic");
  Places places;
  std::memcpy(&places, reader.take(sizeof places).data(), sizeof places);
  return places;
}

Moved run_traffic(End& end, const Stand& stand, uint32_t rank, const Places& places) {
  Stays<Traffic> traffic(end, stand, rank, places);
  return traffic->run();
}

}  // namespace pw::nic::check
