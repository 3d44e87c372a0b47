// Everything that two processes can do with the CUDA device, on real GPUs: one process owns memory of every
// kind, the other maps it and copies there and back by both units. Prints one JSON line a check; exits with
// the number of failed ones (at most 100). The driver, NVRTC and the folder of compiled kernels are those of
// the settings.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <memory>

#include "base/status.h"
#include "check.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/cuda/pointer.h"

using namespace pw;
using namespace pw::cuda;

namespace {

constexpr uint64_t kBytes = 3 << 20;  // of each shared span

struct Offered {  ///< owner to user
  char kind[32];
  char why_none[600];
  bool expect_none;
  uint64_t bytes;
  uint64_t seed;
  Export exported;
};
struct Order {  ///< user to owner
  enum Kind { hash, wait_word, next } kind;
  uint64_t value;
};
struct Answer {
  uint64_t hash;
  bool seen;
};

struct Shared {  ///< host memory of both processes
  alignas(64) std::atomic<uint64_t> word;
};

template <typename Body>
pw_status status_of(Body&& body, std::string& message) {
  try {
    body();
    message.clear();
    return PW_OK;
  } catch (const Error& error) {
    message = error.what();
    return error.status();
  }
}

// A pinned host buffer of one device.
class Pinned {
 public:
  Pinned(Device& device, uint64_t bytes) : device_(device), bytes_(bytes) {
    address_ = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    device_.pin(address_, bytes);
  }
  ~Pinned() {
    device_.unpin(address_);
    munmap(address_, bytes_);
  }
  [[nodiscard]] std::byte* get() const { return address_; }

 private:
  Device& device_;
  uint64_t bytes_;
  std::byte* address_;
};

// ---- the owner
// ----------------------------------------------------------------------------------------------------

class Owner {
 public:
  Owner(Device& device, const Driver& driver, Shared* shared, int socket)
      : device_(device),
        driver_(driver),
        shared_(shared),
        socket_(socket),
        queue_(device.make_queue()),
        host_(device, kBytes) {
    driver_.cuDevicePrimaryCtxRetain(&context_, device.id().index);
    driver_.cuCtxPushCurrent(context_);
  }

  void run() {
    CUdeviceptr address = 0;
    driver_.check(driver_.cuMemAlloc(&address, kBytes), "cuMemAlloc");
    offer("cudaMalloc", address, false);
    CUdeviceptr small[5];
    for (auto& part : small) driver_.check(driver_.cuMemAlloc(&part, 70000), "cuMemAlloc");
    offer("cudaMalloc small", small[3], false, 70000);
    const Allocation own = device_.allocate(kBytes);
    offer("allocate", reinterpret_cast<CUdeviceptr>(own.base), false);
    const CUmemoryPool shareable = make_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const CUdeviceptr first = from_pool(shareable), second = from_pool(shareable);
    offer("pool", first, false);
    offer("pool again", second, false);
    offer("pool without handle", from_pool(make_pool(CU_MEM_HANDLE_TYPE_NONE)), true);
    driver_.check(driver_.cuMemAllocManaged(&address, kBytes, 1), "cuMemAllocManaged");
    offer("managed", address, true);
    offer("cuMemCreate without handle", chunks(1, CU_MEM_HANDLE_TYPE_NONE), true);
    offer("cuMemCreate", chunks(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), false);
    offer("cuMemCreate several", chunks(3, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), false);
    offer("cuMemCreate several without handle", chunks(3, CU_MEM_HANDLE_TYPE_NONE), true);
    Offered last{};
    std::strcpy(last.kind, "end");
    check::send(socket_, last);
    // The user reads the released descriptor: it must be refused as stale.
    const CUdeviceptr shown = chunks(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    auto* memory = reinterpret_cast<std::byte*>(shown);
    Export exported = device_.export_allocation(device_.find(memory, 1).value(), memory);
    device_.forget(exported);
    check::send(socket_, exported);
    check::receive<Order>(socket_);
  }

 private:
  CUmemoryPool make_pool(int handles) {
    CUmemPoolProps wanted{};
    wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.handleTypes = handles;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_.id().index};
    CUmemoryPool pool = nullptr;
    driver_.check(driver_.cuMemPoolCreate(&pool, &wanted), "cuMemPoolCreate");
    return pool;
  }

  CUdeviceptr from_pool(CUmemoryPool pool) {
    CUdeviceptr address = 0;
    driver_.check(driver_.cuMemAllocFromPoolAsync(&address, kBytes, pool, nullptr),
                  "cuMemAllocFromPoolAsync");
    driver_.check(driver_.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    return address;
  }

  // Addresses of several handles side by side, as PyTorch's expandable segments are.
  CUdeviceptr chunks(int count, int handles) {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_.id().index};
    wanted.requestedHandleTypes = handles;
    const uint64_t bytes = count == 1 ? 4 << 20 : 2 << 20;
    CUdeviceptr address = 0;
    driver_.check(driver_.cuMemAddressReserve(&address, bytes * 8, 0, 0, 0), "cuMemAddressReserve");
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device_.id().index},
                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    for (int i = 0; i < count; ++i) {
      CUmemGenericAllocationHandle handle = 0;
      driver_.check(driver_.cuMemCreate(&handle, bytes, &wanted, 0), "cuMemCreate");
      driver_.check(driver_.cuMemMap(address + static_cast<uint64_t>(i) * bytes, bytes, 0, handle, 0),
                    "cuMemMap");
    }
    driver_.check(driver_.cuMemSetAccess(address, bytes * static_cast<uint64_t>(count), &access, 1),
                  "cuMemSetAccess");
    return address;
  }

  void offer(const char* kind, CUdeviceptr address, bool expect_none, uint64_t bytes = kBytes) {
    auto* memory = reinterpret_cast<std::byte*>(address);
    Offered offered{};
    std::strncpy(offered.kind, kind, sizeof offered.kind - 1);
    offered.expect_none = expect_none;
    offered.bytes = bytes;
    offered.seed = address;
    const auto data = check::random_bytes(bytes, offered.seed);
    std::memcpy(host_.get(), data.data(), bytes);
    queue_->copy(check::contiguous(memory, host_.get(), bytes), CopyBy::engine);
    check::finish(*queue_);
    const auto allocation = device_.find(memory, bytes);
    if (!allocation) {
      std::strcpy(offered.why_none, "find() does not know it");
    } else {
      std::strncpy(offered.why_none, allocation->why_none.c_str(), sizeof offered.why_none - 1);
      try {
        offered.exported = device_.export_allocation(*allocation, memory);
        if (allocation->id != device_.allocation_id(memory))
          std::strcpy(offered.why_none, "two ids for one allocation");
      } catch (const Error& error) {
        std::strncpy(offered.why_none, error.what(), sizeof offered.why_none - 1);
      }
    }
    check::send(socket_, offered);
    serve(memory, bytes);
  }

  void serve(std::byte* memory, uint64_t bytes) {
    for (;;) {
      const Order order = check::receive<Order>(socket_);
      if (order.kind == Order::next) return;
      Answer answer{0, true};
      if (order.kind == Order::wait_word) {
        const double start = check::microseconds();
        while (shared_->word.load(std::memory_order_acquire) < order.value &&
               check::microseconds() - start < 1e7) {
        }
        answer.seen = shared_->word.load(std::memory_order_acquire) >= order.value;
      }
      queue_->copy(check::contiguous(host_.get(), memory, bytes), CopyBy::engine);
      check::finish(*queue_);
      answer.hash = check::hash({host_.get(), host_.get() + bytes});
      check::send(socket_, answer);
    }
  }

  Device& device_;
  const Driver& driver_;
  Shared* shared_;
  int socket_;
  std::unique_ptr<Queue> queue_;
  Pinned host_;
  CUcontext context_ = nullptr;
};

// ---- the user
// -----------------------------------------------------------------------------------------------------

struct Case {
  const char* name;
  uint64_t to_offset, from_offset;
  Layout layout;
};

Case make_case(const char* name, uint64_t to, uint64_t from, uint64_t block, std::vector<uint64_t> count,
               std::vector<int64_t> to_stride, std::vector<int64_t> from_stride) {
  Case test_case{name, to, from, {}};
  test_case.layout.shape.block_bytes = block;
  test_case.layout.shape.dims = static_cast<uint32_t>(count.size());
  std::copy(count.begin(), count.end(), test_case.layout.shape.count.begin());
  std::copy(to_stride.begin(), to_stride.end(), test_case.layout.to.begin());
  std::copy(from_stride.begin(), from_stride.end(), test_case.layout.from.begin());
  return test_case;
}

std::vector<Case> cases(uint64_t bytes) {
  std::vector<Case> all = {
      make_case("0-D", 256, 512, 40000, {}, {}, {}),
      make_case("0-D unaligned alike", 3, 19, 40001, {}, {}, {}),
      make_case("0-D unaligned apart", 5, 8, 4099, {}, {}, {}),
      make_case("0-D three bytes", 13, 29, 3, {}, {}, {}),
      make_case("1-D doubles", 8, 16, 8, {700}, {64}, {80}),
      make_case("1-D rows", 0, 32, 48, {500}, {128}, {112}),
      make_case("1-D packed to strided", 1, 2, 7, {900}, {7}, {64}),
      make_case("2-D nested", 0, 0, 16, {10, 20}, {64 * 32, 64}, {48 * 40, 48}),
      make_case("2-D not nested", 0, 4, 12, {9, 30}, {2000, 60}, {1996, 52}),
      make_case("2-D transposed", 0, 0, 8, {25, 40}, {8, 200}, {320, 8}),
      make_case("3-D", 16, 0, 16, {4, 5, 6}, {8192, 1024, 64}, {6144, 960, 32}),
      make_case("4-D", 0, 8, 8, {3, 4, 5, 6}, {20000, 4000, 640, 96}, {15000, 3000, 504, 72}),
  };
  if (bytes >= kBytes) {
    all.push_back(make_case("0-D large", 0, 0, bytes - 64, {}, {}, {}));
    all.push_back(make_case("2-D large", 0, 0, 1024, {16, 64}, {131072, 2048}, {65536, 1024}));
  }
  return all;
}

class User {
 public:
  User(Device& device, const Driver& driver, Shared* shared, int socket)
      : device_(device),
        driver_(driver),
        shared_(shared),
        socket_(socket),
        queue_(device.make_queue()),
        local_(device.allocate(kBytes)),
        host_(device, kBytes) {
    device_.pin(shared_, sizeof(Shared));
  }

  void run() {
    std::string why;
    const bool kernels = device_.has_kernels(why);
    check::report("kernels", kernels, {{"why_not", why}});
    units_ = {CopyBy::engine};
    if (kernels) units_.push_back(CopyBy::kernel);
    for (;;) {
      const auto offered = check::receive<Offered>(socket_);
      if (std::string(offered.kind) == "end") break;
      use(offered);
      check::send(socket_, Order{Order::next, 0});
    }
    errors(check::receive<Export>(socket_));
    ids();
    speed();
    check::send(socket_, Order{Order::next, 0});
  }

 private:
  static const char* name(CopyBy by) { return by == CopyBy::engine ? "engine" : "kernel"; }

  void use(const Offered& offered) {
    const std::string kind = offered.kind;
    const bool none = offered.exported.handle == Handle::none;
    check::report(kind + ": handle", none == offered.expect_none,
                  {{"handle", static_cast<int>(offered.exported.handle)}, {"why_none", offered.why_none}});
    if (none) return;
    std::string why;
    const bool reaches = device_.reaches(offered.exported, why);
    check::report(kind + ": reaches", reaches, {{"why_not", why}, {"link", device_.link(offered.exported)}});
    std::shared_ptr<Mapping> mapping, again;
    const pw_status status = status_of([&] { mapping = device_.import(offered.exported); }, why);
    check::report(kind + ": import", status == PW_OK, {{"why", why}});
    if (status != PW_OK) return;
    status_of([&] { again = device_.import(offered.exported); }, why);
    check::report(kind + ": one mapping for two imports", again == mapping);
    remote_ = mapping->address() + offered.exported.offset;
    bytes_ = offered.bytes;
    mirror_ = check::random_bytes(bytes_, offered.seed);
    check::report(kind + ": what the owner wrote", read(remote_) == mirror_);
    for (CopyBy by : units_) {
      for (const Case& test_case : cases(bytes_)) {
        put(kind, test_case, by);
        get(kind, test_case, by);
      }
      signal(kind, by);
    }
    mapping.reset();
    again.reset();
    status_of([&] { mapping = device_.import(offered.exported); }, why);
    const bool back = mapping != nullptr && read(mapping->address() + offered.exported.offset) == mirror_;
    check::report(kind + ": mapped a second time", back, {{"why", why}});
  }

  std::vector<std::byte> read(const std::byte* device) {
    std::memset(host_.get(), 0x5a, bytes_);
    queue_->copy(check::contiguous(host_.get(), device, bytes_), CopyBy::engine);
    const pw_status status = check::finish(*queue_);
    if (status != PW_OK) std::fprintf(stderr, "%s\n", last_error_message());
    return {host_.get(), host_.get() + bytes_};
  }

  void fill(std::byte* device, const std::vector<std::byte>& data) {
    std::memcpy(host_.get(), data.data(), data.size());
    queue_->copy(check::contiguous(device, host_.get(), data.size()), CopyBy::engine);
    check::finish(*queue_);
  }

  void put(const std::string& kind, const Case& test_case, CopyBy by) {
    const auto source = check::random_bytes(bytes_, ++seed_);
    mirror_ = check::random_bytes(bytes_, ++seed_);  // poison
    fill(local_.base, source);
    fill(remote_, mirror_);
    const pw_status status = queue_->copy(
        {remote_ + test_case.to_offset, local_.base + test_case.from_offset, test_case.layout}, by);
    const pw_status done = check::finish(*queue_);
    check::reference(test_case.layout, mirror_.data() + test_case.to_offset,
                     source.data() + test_case.from_offset);
    check::send(socket_, Order{Order::hash, 0});
    const bool same = check::receive<Answer>(socket_).hash == check::hash(mirror_);
    check::report(
        kind + ": put " + test_case.name + " by " + name(by), status == PW_OK && done == PW_OK && same,
        {{"status", status}, {"done", done}, {"owner_sees_it", same}, {"message", last_error_message()}});
  }

  void get(const std::string& kind, const Case& test_case, CopyBy by) {
    const auto source = mirror_;
    auto expected = check::random_bytes(bytes_, ++seed_);
    fill(local_.base, expected);
    const pw_status status = queue_->copy(
        {local_.base + test_case.to_offset, remote_ + test_case.from_offset, test_case.layout}, by);
    const pw_status done = check::finish(*queue_);
    check::reference(test_case.layout, expected.data() + test_case.to_offset,
                     source.data() + test_case.from_offset);
    const bool same = read(local_.base) == expected;
    check::report(kind + ": get " + test_case.name + " by " + name(by),
                  status == PW_OK && done == PW_OK && same,
                  {{"status", status}, {"done", done}, {"same", same}, {"message", last_error_message()}});
  }

  // The owner's CPU waits for the word and must then find the data.
  void signal(const std::string& kind, CopyBy by) {
    for (int round = 0; round < 20; ++round) {
      const bool fused = round % 2 == 1;
      mirror_ = check::random_bytes(bytes_, ++seed_);
      fill(local_.base, mirror_);
      check::send(socket_, Order{Order::wait_word, ++value_});
      auto* word = reinterpret_cast<uint64_t*>(&shared_->word);
      const Copy copy = check::contiguous(remote_, local_.base, bytes_);
      pw_status status = PW_OK;
      if (fused)
        status = queue_->copy_and_write(copy, by, word, value_);
      else if ((status = queue_->copy(copy, by)) == PW_OK)
        status = queue_->write(word, value_);
      const auto answer = check::receive<Answer>(socket_);
      const bool same = answer.hash == check::hash(mirror_);
      if (status == PW_OK && answer.seen && same && round + 2 < 20) continue;
      check::report(
          kind + ": signal after data by " + name(by) + (fused ? ", fused" : ""),
          status == PW_OK && answer.seen && same,
          {{"status", status}, {"seen", answer.seen}, {"data", same}, {"message", last_error_message()}});
    }
    // A word in the peer's device memory. Streams write none in imported pools (CUDA_ERROR_INVALID_VALUE,
    // driver 580), where no signal ever lies.
    if (kind.starts_with("pool")) return;
    const uint64_t value = 0x1122334455667788ull + value_;
    const pw_status status = queue_->write(reinterpret_cast<uint64_t*>(remote_ + 64), value);
    check::finish(*queue_);
    std::memcpy(mirror_.data() + 64, &value, sizeof value);
    check::report(kind + ": write a word of the peer's device memory",
                  status == PW_OK && read(remote_) == mirror_);
  }

  void errors(const Export& stale) {
    std::string message;
    const auto refuse = [&](const char* refusal, pw_status wanted, const std::function<void()>& body) {
      const pw_status status = status_of(body, message);
      check::report(std::string("refused: ") + refusal, status == wanted,
                    {{"status", status}, {"message", message}});
    };
    refuse("a descriptor that its owner closed", PW_STALE_KEY, [&] { device_.import(stale); });
    Export none = stale;
    none.handle = Handle::none;
    refuse("memory that cannot be exported", PW_UNSUPPORTED, [&] { device_.import(none); });
    Export gone = stale;
    gone.process = 0x3ffffff;
    refuse("a process that is not there", PW_PEER_LOST, [&] { device_.import(gone); });
    refuse("1 TiB", PW_NO_MEMORY, [&] { device_.allocate(uint64_t{1} << 40); });
    std::string why;
    Export foreign = stale;
    foreign.device_uuid.fill(std::byte{0xee});
    check::report("refused: a GPU that is not visible", !device_.reaches(foreign, why), {{"why_not", why}});
    int host = 0;
    check::report("a host address is no device memory", !device_.find(&host, sizeof host).has_value());
    try {
      const int descriptor = device_.dma_buf(local_);
      void* address = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
      check::report("dma-buf", true,
                    {{"descriptor", descriptor}, {"mmap", address != MAP_FAILED}, {"errno", errno}});
      close(descriptor);
    } catch (const Error& error) {
      check::report("dma-buf", true, {{"why_not", error.what()}});
    }
    auto* page = static_cast<std::byte*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const pw_status two = status_of(
        [&] {
          device_.pin(page, 256);
          device_.pin(page + 512, 256);
          device_.pin(page, 128);
          device_.unpin(page);
          device_.unpin(page + 512);
          device_.unpin(page);
        },
        message);
    check::report("two pins in one page, and one within another", two == PW_OK, {{"message", message}});
  }

  void ids() {
    CUcontext context = nullptr;
    driver_.cuDevicePrimaryCtxRetain(&context, device_.id().index);
    const Current current(driver_, context);
    CUdeviceptr before = 0, after = 0;
    bool reused = false, changed = true;
    for (int i = 0; i < 20; ++i) {
      driver_.cuMemAlloc(&before, 8 << 20);
      const uint64_t id = device_.allocation_id(reinterpret_cast<void*>(before));
      driver_.cuMemFree(before);
      const bool gone = device_.allocation_id(reinterpret_cast<void*>(before)) != id;
      driver_.cuMemAlloc(&after, 8 << 20);
      if (after == before) {
        reused = true;
        changed = changed && gone && device_.allocation_id(reinterpret_cast<void*>(after)) != id;
      }
      driver_.cuMemFree(after);
    }
    check::report("id changes when an address is reused", changed, {{"reused", reused}});
    const double start = check::microseconds();
    uint64_t sum = 0;
    for (int i = 0; i < 10000; ++i) sum += device_.allocation_id(local_.base);
    check::report("time of allocation_id", sum != 0, {{"ns", (check::microseconds() - start) / 10}});
  }

  // Not a benchmark: a first look at the cost of the calls and of a cube's face.
  void speed() {
    const Allocation cube = device_.allocate(uint64_t{256} * 256 * 256 * 8);
    const Allocation peer = device_.allocate(uint64_t{256} * 256 * 256 * 8);
    const auto face = make_case("face", 0, 0, 8, {65536}, {2048}, {2048});
    const auto middle = make_case("face", 0, 0, 2048, {256}, {524288}, {524288});
    const std::pair<const char*, Layout> layouts[] = {{"8 B blocks", face.layout},
                                                      {"2 KiB blocks", middle.layout}};
    for (CopyBy by : units_)
      for (const auto& [blocks, layout] : layouts) {
        std::vector<double> calls, totals;
        for (int i = 0; i < 300; ++i) {
          auto* word = reinterpret_cast<uint64_t*>(&shared_->word);
          const double start = check::microseconds();
          queue_->copy_and_write({peer.base, cube.base, layout}, by, word, ++value_);
          calls.push_back(check::microseconds() - start);
          while (shared_->word.load(std::memory_order_acquire) < value_ &&
                 check::microseconds() - start < 1e6) {
          }
          totals.push_back(check::microseconds() - start);
        }
        std::nth_element(calls.begin(), calls.begin() + 150, calls.end());
        std::nth_element(totals.begin(), totals.begin() + 150, totals.end());
        check::report(std::string("time of a 512 KiB face in one GPU, ") + blocks + " by " + name(by), true,
                      {{"call_us", calls[150]}, {"until_signal_us", totals[150]}});
      }
    device_.release(cube);
    device_.release(peer);
  }

  Device& device_;
  const Driver& driver_;
  Shared* shared_;
  int socket_;
  std::unique_ptr<Queue> queue_;
  Allocation local_;
  Pinned host_;
  std::vector<CopyBy> units_;
  std::byte* remote_ = nullptr;
  uint64_t bytes_ = 0;
  std::vector<std::byte> mirror_;
  uint64_t seed_ = 1;
  uint64_t value_ = 0;
};

// Runs one side; what it throws is a failed check.
template <typename Side>
void run_side(const char* side, int wanted_gpu, Shared* shared, int socket) {
  try {
    std::string why;
    auto devices = find_devices(why);
    const auto driver = Driver::load(settings::cuda_library.text(), why);
    if (devices.empty() || driver == nullptr) {
      check::report(std::string(side) + ": devices", false, {{"why_none", why}});
      return;
    }
    Device& device = *devices[std::min(static_cast<size_t>(wanted_gpu), devices.size() - 1)];
    check::report(
        std::string(side) + ": device", true,
        {{"name", device.name()}, {"id", to_string(device.id())}, {"driver", version_text(driver->version)}});
    Side(device, *driver, shared, socket).run();
  } catch (const std::exception& error) {
    check::report(std::string(side) + ": no exception", false, {{"what", error.what()}});
  }
}

}  // namespace

int main() {
  const int memfd = memfd_create("device-check", 0);
  if (ftruncate(memfd, 4096) != 0) return 101;
  auto* shared = static_cast<Shared*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0));
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 101;
  const pid_t owner = fork();  // before anything of CUDA: a context does not survive a fork
  if (owner == 0) {
    close(sockets[0]);
    run_side<Owner>("owner", 0, shared, sockets[1]);
    std::fflush(stdout);
    std::_Exit(std::min(check::failures, 100));
  }
  close(sockets[1]);
  run_side<User>("user", 1, shared, sockets[0]);
  close(sockets[0]);
  int ended = 0;
  waitpid(owner, &ended, 0);
  check::report("owner ended well", WIFEXITED(ended) && WEXITSTATUS(ended) == 0, {{"status", ended}});
  return std::min(check::failures, 100);
}
