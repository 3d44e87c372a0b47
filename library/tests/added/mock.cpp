// A kind of device of the tests. Its memory is shared memory, but at the addresses that the program knows
// nobody can touch it, as with the memory of a GPU: copies, steps of plans and waits find it at a second
// address, and host memory only where it was pinned. Nothing in Peerway knows of it but one line of the list
// (kinds.cpp).
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/status.h"
#include "device/host/copy.h"
#include "device/host/host.h"
#include "device/host/reduction.h"
#include "device/program.h"
#include "device/steps.h"
#include "peerway/device.cuh"

namespace pw {
namespace {

constexpr auto kMock = static_cast<pw_device_kind>(3);
constexpr Handle kShared = handle_of_device(0);
constexpr std::array<std::byte, 16> kUuid = {std::byte{'m'}, std::byte{'o'}, std::byte{'c'}, std::byte{'k'}};

/// Where the device finds what the program knows by another address, or by the same one.
class Views {
 public:
  void add(const void* first, uint64_t bytes, int64_t further) {
    std::lock_guard lock(mutex_);
    views_.emplace(static_cast<const std::byte*>(first), View{bytes, further});
  }
  void remove(const void* first) {
    std::lock_guard lock(mutex_);
    views_.erase(views_.find(static_cast<const std::byte*>(first)));
  }
  /// Null where the device does not reach the address.
  std::byte* find(const void* address) {
    auto* byte = const_cast<std::byte*>(static_cast<const std::byte*>(address));
    std::lock_guard lock(mutex_);
    for (auto view = views_.upper_bound(byte); view != views_.begin();) {
      --view;
      if (byte < view->first + view->second.bytes) return byte + view->second.further;
    }
    return nullptr;
  }

 private:
  struct View {
    uint64_t bytes;
    int64_t further;
  };
  std::mutex mutex_;
  std::multimap<const std::byte*, View> views_;
};

/// Shared memory as the device sees it, and addresses as long that nobody can use.
class Seen {
 public:
  Seen(Views& views, std::byte* behind, uint64_t bytes) : views_(views), behind_(behind), bytes_(bytes) {
    void* front = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (front == MAP_FAILED) throw Error(PW_NO_MEMORY, format("no {} addresses", bytes));
    front_ = static_cast<std::byte*>(front);
    views_.add(front_, bytes_, behind_ - front_);
  }
  ~Seen() {
    views_.remove(front_);
    munmap(front_, bytes_);
    munmap(behind_, bytes_);
  }
  Seen(const Seen&) = delete;
  [[nodiscard]] std::byte* front() const { return front_; }
  [[nodiscard]] std::byte* behind() const { return behind_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  Views& views_;
  std::byte* front_ = nullptr;
  std::byte* behind_;
  uint64_t bytes_;
};

struct Memory {
  Descriptor descriptor;
  Seen seen;
  uint64_t id;
};

class Imported final : public Mapping {
 public:
  Imported(Views& views, std::byte* behind, uint64_t bytes) : seen_(views, behind, bytes) {
    address_ = seen_.front();
  }

 private:
  Seen seen_;
};

class Mapped final : public CpuMapping {
 public:
  explicit Mapped(std::byte* address) { address_ = address; }
};

pw_status unreachable() { return fail(PW_INTERNAL, "mock:0: illegal address: neither its own nor pinned"); }

class MockQueue final : public Queue {
 public:
  explicit MockQueue(Views& views) : views_(views) {}
  pw_status copy(const Copy& copy, CopyBy) override {
    const Copy seen{views_.find(copy.to), views_.find(copy.from), copy.layout};
    if (seen.to == nullptr || seen.from == nullptr) return unreachable();
    host_copy(seen);
    return PW_OK;
  }
  pw_status write(uint64_t* word, uint64_t value) override {
    auto* seen = reinterpret_cast<uint64_t*>(views_.find(word));
    if (seen == nullptr) return unreachable();
    std::atomic_ref(*seen).store(value, std::memory_order_release);
    return PW_OK;
  }
  bool idle(pw_status& status) override {
    status = PW_OK;
    return true;
  }

 private:
  Views& views_;
};

/// A plan as GPUs run it, by one thread: that of the stream.
class MockRunner final : public Runner {
 public:
  MockRunner(Views& views, const Program& program) : views_(views), guard_(program.guard) {
    steps_ = make_steps(program, [&](const void* address) {
      if (auto* seen = views.find(address)) return reinterpret_cast<uint64_t>(seen);
      throw Error(unreachable(), last_error_message());
    });
    const size_t start_steps = program.start.size(), all_steps = start_steps + program.finish.size();
    for (size_t s = 0; s < all_steps; ++s) (s < start_steps ? start_ : all_) += steps_[s].pieces;
    all_ += start_;
    unsigned pieces = all_;
    for (size_t s = all_steps; s < steps_.size(); ++s) pieces += steps_[s].pieces;
    epochs_.resize(pieces);
    add_rounds(program, all_steps, views);
    finished_.resize(steps_.size());
    for (size_t s = 0; s < steps_.size(); ++s)
      if (steps_[s].pieces > 1 && steps_[s].words == 1 && steps_[s].mark.word != nullptr)
        steps_[s].finished = &finished_[s];
    polled_ = reinterpret_cast<unsigned long long*>(views.find(guard_->polled));
  }

  pw_status enqueue(void* stream, PlanPart part, const Condition& condition) override {
    Condition seen = condition;
    if (const auto* word = views_.find(condition.word)) seen.word = reinterpret_cast<const int*>(word);
    static_cast<HostStream*>(stream)->enqueue([this, part, seen] {
      if (seen.is_met()) run(part);
    });
    return PW_OK;
  }
  pw_status begin(PlanPart part, const std::optional<void*>& after) override {
    begun_on_ = after ? static_cast<HostStream*>(*after) : &own_;
    return enqueue(begun_on_, part, {});
  }
  bool done(pw_status& status) override {
    status = PW_OK;
    return begun_on_->idle();
  }
  bool notify(void (*call)(void*), void* user) override {
    begun_on_->enqueue([call, user] { call(user); });
    return true;
  }
  uint64_t epochs(PlanPart part) override {
    const unsigned piece = part == PlanPart::finish ? start_ : 0;
    return piece < epochs_.size() ? epochs_[piece] & ~peerway::device::kCancelled : 0;
  }
  pw_status handle(pw_plan_handle&) override { return fail(PW_UNSUPPORTED, "mock:0 runs no kernels"); }

 private:
  void run(PlanPart part) {
    auto word_of = [](std::atomic<uint64_t>& word) { return reinterpret_cast<unsigned long long*>(&word); };
    const pw_guard guard{word_of(guard_->stop), word_of(guard_->report), polled_, guard_->timeout_ns};
    const auto run_pieces = [&](unsigned first, unsigned last) {
      return peerway::device::detail::run_pieces(peerway::device::Thread(), steps_.data(), first, last,
                                                 epochs_.data(), guard, 0, 1);
    };
    const unsigned last = part == PlanPart::start ? start_ : all_;
    if (!run_pieces(part == PlanPart::finish ? start_ : 0, last) || part == PlanPart::start) return;
    unsigned first = all_;
    for (const Round& round : rounds_) {
      if (round.reduction) host_reduce(*round.reduction);
      if (!run_pieces(first, round.end)) return;
      first = round.end;
    }
  }

  struct Round {
    std::optional<peerway::device::Reduction> reduction;
    unsigned end;  ///< of its pieces
  };
  void add_rounds(const Program& program, size_t step, Views& views) {
    unsigned end = all_;
    for (const ProgramRound& from : program.rounds) {
      Round round{from.reduction, 0};
      for (size_t s = 0; s < from.steps.size(); ++s) end += steps_[step++].pieces;
      round.end = end;
      if (auto& reduction = round.reduction) {
        const auto seen = [&](const unsigned char* address) {
          return reinterpret_cast<unsigned char*>(views.find(address));
        };
        reduction->to = seen(reduction->to);
        reduction->local = seen(reduction->local);
        reduction->others = seen(reduction->others);
      }
      rounds_.push_back(round);
    }
  }

  Views& views_;
  std::shared_ptr<Guard> guard_;
  unsigned long long* polled_;
  std::vector<peerway::device::Step> steps_;
  unsigned start_ = 0, all_ = 0;  ///< pieces
  std::vector<peerway::device::Word> epochs_, finished_;
  std::vector<Round> rounds_;
  HostStream own_;  ///< ends first: what it runs uses the rest
  HostStream* begun_on_ = &own_;
};

class MockDevice final : public Device {
 public:
  [[nodiscard]] DeviceId id() const override { return {kMock, 0}; }
  [[nodiscard]] std::string name() const override { return "Mock"; }
  [[nodiscard]] std::array<std::byte, 16> uuid() const override { return kUuid; }

  std::optional<Allocation> find(const void* address, uint64_t) override {
    std::lock_guard lock(mutex_);
    const auto* byte = static_cast<const std::byte*>(address);
    auto next = memories_.upper_bound(byte);
    if (next == memories_.begin() || byte >= (--next)->first + next->second->seen.bytes())
      return std::nullopt;
    return allocation_of(*next->second);
  }
  uint64_t allocation_id(const void* address) override {
    const auto allocation = find(address, 1);
    return allocation ? allocation->id : 0;
  }
  Allocation allocate(uint64_t bytes) override {
    const uint64_t page = 4096, size = (bytes + page - 1) / page * page;
    Descriptor descriptor = make_memfd("mock", size);
    std::byte* behind =
        map_memfd_of(getpid(), descriptor.get(), memfd_identity(descriptor.get()), size, "this process");
    std::lock_guard lock(mutex_);
    auto memory =
        std::unique_ptr<Memory>(new Memory{std::move(descriptor), Seen(views_, behind, size), ++last_id_});
    return allocation_of(*(memories_[memory->seen.front()] = std::move(memory)));
  }
  void release(const Allocation& allocation) noexcept override {
    std::lock_guard lock(mutex_);
    memories_.erase(allocation.base);
  }
  Export export_allocation(const Allocation& allocation, const void* address) override {
    Export exported = describe(allocation, address);
    std::lock_guard lock(mutex_);
    exported.descriptor = memories_.at(allocation.base)->descriptor.get();
    const uint64_t identity = memfd_identity(exported.descriptor);
    std::memcpy(exported.handle_bytes.data(), &identity, sizeof identity);
    exported.device_uuid = kUuid;
    return exported;
  }
  void forget(const Export&) noexcept override {}
  std::shared_ptr<Mapping> import(const Export& exported) override {
    if (exported.process == getpid()) return std::make_shared<OwnMemory>(exported);
    uint64_t identity;
    std::memcpy(&identity, exported.handle_bytes.data(), sizeof identity);
    std::byte* behind = map_memfd_of(exported.process, exported.descriptor, identity, exported.bytes,
                                     "a process with a mock");
    return std::make_shared<Imported>(views_, behind, exported.bytes);
  }
  [[nodiscard]] bool reaches(const Export& exported, std::string& why_not) const override {
    if (exported.process == getpid() || exported.handle == kShared || exported.handle == Handle::memfd)
      return true;
    why_not = "a mock reaches host memory of another process only where it came from pw_region_allocate";
    return false;
  }

  std::unique_ptr<Queue> make_queue() override { return std::make_unique<MockQueue>(views_); }
  void* make_stream() override { return new HostStream; }
  void free_stream(void* stream) noexcept override { delete static_cast<HostStream*>(stream); }
  bool owns_stream(void*, std::string&) override { return true; }
  pw_status call(void* stream, void (*function)(void*), void* user) override {
    static_cast<HostStream*>(stream)->enqueue([function, user] { function(user); });
    return PW_OK;
  }
  pw_status copy_on(void* stream, const FlatCopy& copy) override {
    static_cast<HostStream*>(stream)->enqueue([this, copy] {
      if (copy.bytes > 0) std::memcpy(views_.find(copy.to), views_.find(copy.from), copy.bytes);
    });
    return PW_OK;
  }
  bool stream_idle(void* stream, pw_status& status) override {
    status = PW_OK;
    return static_cast<HostStream*>(stream)->idle();
  }
  std::unique_ptr<Runner> make_runner(const Program& program) override {
    return std::make_unique<MockRunner>(views_, program);
  }
  void clear(void* address, uint64_t bytes) override { std::memset(views_.find(address), 0, bytes); }
  std::unique_ptr<CpuMapping> map_for_cpu(const Allocation& allocation) override {
    return std::make_unique<Mapped>(views_.find(allocation.base));
  }
  void pin(void* address, uint64_t bytes) override { views_.add(address, bytes, 0); }
  void unpin(void* address) noexcept override { views_.remove(address); }
  bool has_kernels(std::string& why_not) override {
    why_not = "a mock has no copy kernels";
    return false;
  }
  [[nodiscard]] std::string link(const Export&) const override { return {}; }

 private:
  static Allocation allocation_of(const Memory& memory) {
    return {.device = {kMock, 0},
            .base = memory.seen.front(),
            .bytes = memory.seen.bytes(),
            .id = memory.id,
            .handle = kShared,
            .why_none = {}};
  }

  Views views_;
  std::mutex mutex_;
  std::map<const std::byte*, std::unique_ptr<Memory>> memories_;
  uint64_t last_id_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Device>> find_mock(std::string&);
std::vector<std::unique_ptr<Device>> find_mock(std::string&) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::make_unique<MockDevice>());
  return devices;
}

}  // namespace pw
