// The plugin through its public interface, with several endpoints in one process.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "built.h"
#include "peerway/nic.h"

namespace {

const pw_nic_ops* load_torus_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<pw_nic_plugin_function>(dlsym(library, PW_NIC_PLUGIN_SYMBOL))();
}

const pw_nic_ops* torus_plugin = load_torus_plugin(pw::kTorusPlugin);
pw_nic_memory_kind torus_kind = PW_NIC_HOST;

const pw_nic_ops& torus_ops() { return *torus_plugin; }

uint64_t torus_job() { return 0x7e57000000000000 + static_cast<uint64_t>(getpid()); }

std::string torus_file(const std::string& text) {
  static int files = 0;
  const std::string path =
      ::testing::TempDir() + "torus-" + std::to_string(getpid()) + "-" + std::to_string(++files);
  std::ofstream(path) << text;
  return path;
}

struct TorusDone : pw_nic_done {
  int calls = 0;
  pw_nic_status status = PW_NIC_BUSY;
  TorusDone() {
    call = [](pw_nic_done* self, pw_nic_status s) {
      auto* done = static_cast<TorusDone*>(self);
      ++done->calls;
      done->status = s;
    };
  }
};

struct TorusNic {
  pw_nic* nic = nullptr;
  pw_nic_info info{};

  explicit TorusNic(const std::string& configuration = "", uint64_t job = torus_job()) {
    const pw_nic_options options{sizeof options, job, configuration.c_str(), nullptr};
    if (torus_ops().open(&options, &nic) != PW_NIC_OK) throw std::runtime_error(torus_ops().why(nullptr));
    info.size = sizeof info;
    torus_ops().query(nic, &info);
  }
  ~TorusNic() { torus_ops().close(nic); }
  TorusNic(const TorusNic&) = delete;

  pw_nic_status wait(TorusDone& done) {
    while (done.calls == 0) torus_ops().progress(nic);
    return done.status;
  }
};

/// A connection: memory of `to`, accessed from `from`.
struct TorusLink {
  TorusNic &from, &to;
  std::vector<uint64_t> source = std::vector<uint64_t>(65536), target = std::vector<uint64_t>(65536);
  pw_nic_memory *local = nullptr, *there = nullptr;
  pw_nic_peer* peer = nullptr;
  pw_nic_remote* remote = nullptr;

  TorusLink(TorusNic& a, TorusNic& b) : from(a), to(b) {
    std::iota(source.begin(), source.end(), 1);
    pw_nic_key key;
    local = registered(a, source, key);
    there = registered(b, target, key);
    pw_nic_address address;
    torus_ops().address(b.nic, &address);
    EXPECT_EQ(torus_ops().connect(a.nic, &address, &peer), PW_NIC_OK) << torus_ops().why(a.nic);
    EXPECT_EQ(torus_ops().import_key(a.nic, peer, &key, &remote), PW_NIC_OK);
  }
  ~TorusLink() {
    torus_ops().release_key(from.nic, remote);
    torus_ops().disconnect(from.nic, peer);
    torus_ops().deregister_memory(from.nic, local);
    if (there != nullptr) torus_ops().deregister_memory(to.nic, there);
  }
  static pw_nic_memory* registered(TorusNic& nic, std::vector<uint64_t>& words, pw_nic_key& key) {
    pw_nic_memory* memory = nullptr;
    const pw_nic_span span{sizeof span, words.data(), words.size() * 8, torus_kind, 0, -1, 0};
    EXPECT_EQ(torus_ops().register_memory(nic.nic, &span, &memory, &key), PW_NIC_OK)
        << torus_ops().why(nic.nic);
    return memory;
  }
  pw_nic_status put(uint64_t offset, uint64_t bytes) {
    TorusDone done;
    const pw_nic_status status =
        torus_ops().put(from.nic, remote, offset, source.data(), local, bytes, &done);
    return status == PW_NIC_OK ? from.wait(done) : status;
  }
  pw_nic_status get(uint64_t offset, uint64_t bytes) {
    TorusDone done;
    const pw_nic_status status =
        torus_ops().get(from.nic, remote, offset, source.data(), local, bytes, &done);
    return status == PW_NIC_OK ? from.wait(done) : status;
  }
};

// By memory at once, by the engine with modelled times, and by datagrams.
class TorusPlugin : public ::testing::TestWithParam<const char*> {
 protected:
  std::string file_ = torus_file(GetParam());
};
INSTANTIATE_TEST_SUITE_P(
    Transports, TorusPlugin,
    ::testing::Values("{}", R"({"timed": true})",
                      R"({"faults": {"drop": 0.05, "duplicate": 0.05, "corrupt": 0.05}})"));

TEST_P(TorusPlugin, MovesBytesBothWaysAndToItself) {
  TorusNic a(file_), b(file_);
  EXPECT_NE(a.info.number, b.info.number);
  for (TorusNic* to : {&b, &a}) {
    TorusLink link(a, *to);
    EXPECT_EQ(link.put(0, 65536 * 8), PW_NIC_OK);
    std::fill(link.source.begin(), link.source.end(), 0);
    EXPECT_EQ(link.get(0, 65536 * 8), PW_NIC_OK);  // after the put, as the NIC guarantees
    EXPECT_EQ(link.source, link.target);
    EXPECT_EQ(link.target[65535], 65536u);
    EXPECT_EQ(link.put(8, 0), PW_NIC_OK);
    EXPECT_EQ(link.get(8, 0), PW_NIC_OK);
  }
}

TEST_P(TorusPlugin, TouchesNothingOutsideOfTheMemory) {
  TorusNic a(file_), b(file_);
  TorusLink link(a, b);
  EXPECT_EQ(link.put(65536 * 8 - 7, 8), PW_NIC_INVALID);
  EXPECT_EQ(link.get(65536 * 8, 1), PW_NIC_INVALID);
  EXPECT_EQ(link.put(UINT64_MAX, 8), PW_NIC_INVALID);
  uint64_t word = 1;
  EXPECT_EQ(torus_ops().put(a.nic, link.remote, 0, &word, link.local, 8, nullptr), PW_NIC_INVALID);
  EXPECT_EQ(torus_ops().put(a.nic, link.remote, 0, link.source.data(), nullptr, a.info.copied + 1, nullptr),
            PW_NIC_INVALID);
  EXPECT_NE(std::string(torus_ops().why(a.nic)), "");
}

TEST_P(TorusPlugin, RefusesMemoryThatWasDeregistered) {
  TorusNic a(file_), b(file_);
  TorusLink link(a, b);
  EXPECT_EQ(link.put(0, 8), PW_NIC_OK);
  EXPECT_EQ(link.get(0, 8), PW_NIC_OK);
  torus_ops().deregister_memory(b.nic, link.there);
  link.there = nullptr;
  link.target[0] = 99;
  link.put(0, 8);
  EXPECT_EQ(link.get(0, 8), PW_NIC_REFUSED);
  EXPECT_EQ(link.target[0], 99u);
  pw_nic_key key;  // the next memory in that slot is another one
  link.there = TorusLink::registered(b, link.target, key);
  EXPECT_EQ(link.get(0, 8), PW_NIC_REFUSED);
}

TEST_P(TorusPlugin, EndsTowardsAClosedEndpoint) {
  TorusNic a(file_);
  auto b = std::make_unique<TorusNic>(file_);
  auto way = std::make_unique<TorusLink>(a, *b);
  torus_ops().deregister_memory(b->nic, way->there);
  way->there = nullptr;
  b.reset();
  EXPECT_EQ(way->put(0, 8), PW_NIC_UNREACHABLE);
  EXPECT_EQ(way->get(0, 8), PW_NIC_UNREACHABLE);
}

TEST_P(TorusPlugin, EndsWhatIsUnderWayAtClose) {
  TorusDone done;
  auto a = std::make_unique<TorusNic>(file_);
  {
    TorusLink link(*a, *a);
    EXPECT_EQ(torus_ops().get(a->nic, link.remote, 0, link.source.data(), link.local, 8, &done), PW_NIC_OK);
  }
  a.reset();
  EXPECT_EQ(done.calls, 1);
}

std::string why_not(const std::string& configuration) {
  try {
    TorusNic nic(configuration);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(TorusOpen, SaysWhyNot) {
  EXPECT_NE(why_not("/nowhere").find("/nowhere cannot be read"), std::string::npos);
  EXPECT_NE(why_not("node=8").find("node=8 is dead or not on this host; nodes 0 to 7 are"),
            std::string::npos);
  EXPECT_NE(why_not(torus_file(R"({"extents": [1025]})")).find("at most 1024"), std::string::npos);
  EXPECT_NE(why_not(torus_file(R"({"extents": [1], "nodes": {"0": "192.0.2.1"}})"))
                .find("this host has the address of no living node"),
            std::string::npos);
  EXPECT_NE(why_not("file=" + torus_file(R"({"dead": [3]})") + ",node=3").find("node=3 is dead"),
            std::string::npos);
}

TEST(TorusOpen, SaysThatTheOneContextOfANodeIsOpen) {
  const std::string file = torus_file(R"({"contexts": 1})");
  const TorusNic first("node=0,file=" + file);
  EXPECT_NE(why_not("node=0,file=" + file).find("the one context of node 0 is open; allow more"),
            std::string::npos);
}

TEST(TorusOpen, HasAsManyContextsAsTheFileSays) {
  const std::string file = torus_file(R"({"extents": [2, 1], "contexts": 3})");
  std::vector<std::unique_ptr<TorusNic>> nics;
  for (uint32_t number = 0; number < 3; ++number) {
    nics.push_back(std::make_unique<TorusNic>("node=1,file=" + file));
    EXPECT_EQ(nics.back()->info.number, 3 + number);
    EXPECT_EQ(nics.back()->info.coordinate[0], 1u);
    EXPECT_EQ(nics.back()->info.endpoints, 6u);
  }
  EXPECT_NE(why_not("node=1,file=" + file).find("all 3 contexts of node 1 are open"), std::string::npos);
  nics.erase(nics.begin());
  EXPECT_EQ(TorusNic("node=1,file=" + file).info.number, 3u);
}

TEST(TorusOpen, RefusesAnotherTorusFileAndAnotherJob) {
  TorusNic a;
  EXPECT_NE(why_not(torus_file("{}")).find("read another torus file"), std::string::npos);
  TorusNic other("", torus_job() + 1);
  pw_nic_address address;
  torus_ops().address(other.nic, &address);
  pw_nic_peer* peer;
  EXPECT_EQ(torus_ops().connect(a.nic, &address, &peer), PW_NIC_REFUSED);
  EXPECT_NE(std::string(torus_ops().why(a.nic)).find("another job"), std::string::npos);
  address.length = 3;
  EXPECT_EQ(torus_ops().connect(a.nic, &address, &peer), PW_NIC_REFUSED);
}

TEST(TorusOpen, FindsNoWayToADeadNodeOrBehindCutLinks) {
  const std::string file = torus_file(R"({"extents": [3], "cut": [[0, 1], [1, 2]]})");
  TorusNic a("node=0,file=" + file), b("node=1,file=" + file);
  pw_nic_address address;
  torus_ops().address(b.nic, &address);
  pw_nic_peer* peer;
  EXPECT_EQ(torus_ops().connect(a.nic, &address, &peer), PW_NIC_UNREACHABLE);
  EXPECT_NE(std::string(torus_ops().why(a.nic)).find("no route leads from node 0 to node 1"),
            std::string::npos);
}

TEST(TorusOpen, RefusesMemoryThatIsNone) {
  TorusNic nic;
  pw_nic_memory* memory;
  pw_nic_key key;
  const auto refused = [&](void* address, uint64_t bytes, pw_nic_memory_kind kind) {
    const pw_nic_span span{sizeof span, address, bytes, kind, 0, -1, 0};
    return torus_ops().register_memory(nic.nic, &span, &memory, &key);
  };
  uint64_t word = 0;
  EXPECT_EQ(refused(reinterpret_cast<void*>(4096), 8, PW_NIC_HOST), PW_NIC_REFUSED);
  EXPECT_EQ(refused(&word, 0, PW_NIC_HOST), PW_NIC_INVALID);
  EXPECT_EQ(refused(&word, UINT64_MAX, PW_NIC_HOST), PW_NIC_INVALID);
  EXPECT_EQ(refused(&word, 8, PW_NIC_HIP), PW_NIC_REFUSED);
}

double seconds_of(int puts, uint64_t bytes, const std::string& torus) {
  const std::string file = torus_file(torus.c_str());
  TorusNic a("node=0,file=" + file), b("node=1,file=" + file);
  TorusLink link(a, b);
  timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < puts; ++i) EXPECT_EQ(link.put(0, bytes), PW_NIC_OK);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return static_cast<double>(end.tv_sec - begin.tv_sec) +
         static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9;
}

// The modelled time: a put of 512 KiB takes 8 * 2^19 ns, and the next one waits for the link, or for the gap.
TEST(TorusTime, IsThatOfTheFile) {
  EXPECT_GE(seconds_of(4, 1 << 19, R"({"extents": [2], "timed": true, "gbit_per_s": 1})"),
            4 * 8.0 * (1 << 19) / 1e9);
  EXPECT_GE(seconds_of(21, 8, R"({"extents": [2], "timed": true, "gap_ns": 1000000})"), 20 * 1e-3);
}

// The fake driver's GPU memory is memory of the CPU, but the NIC does not know. Uses a copy of the plugin,
// because a plugin looks for the driver only once.
TEST(TorusGpu, MovesMemoryOfAGpuByItsOwnProcess) {
  const std::string copy = ::testing::TempDir() + "libtorus-" + std::to_string(getpid()) + ".so";
  std::ofstream(copy, std::ios::binary) << std::ifstream(pw::kTorusPlugin, std::ios::binary).rdbuf();
  setenv("PEERWAY_CUDA_LIBRARY", pw::kFakeCuda.c_str(), 1);
  const pw_nic_ops* before = std::exchange(torus_plugin, load_torus_plugin(copy));
  std::remove(copy.c_str());
  {
    TorusNic a, b;
    EXPECT_EQ(a.info.memory_kinds, 1u << PW_NIC_HOST | 1u << PW_NIC_CUDA);
    torus_kind = PW_NIC_CUDA;
    TorusLink link(a, b);
    torus_kind = PW_NIC_HOST;
    EXPECT_EQ(link.put(0, 100000), PW_NIC_OK);
    std::fill(link.source.begin(), link.source.end(), 0);
    EXPECT_EQ(link.get(0, 100000), PW_NIC_OK);
    EXPECT_EQ(link.target[12499], 12500u);
    EXPECT_EQ(link.source[12499], 12500u);
    EXPECT_EQ(link.target[12500], 0u);
    // Each byte is copied once at each end; the sender copies more at a time than a datagram carries.
    void* driver = dlopen(pw::kFakeCuda.c_str(), RTLD_NOW);
    const auto take_log = reinterpret_cast<const char* (*)()>(dlsym(driver, "fake_cuda_take_log"));
    take_log();
    std::iota(link.source.begin(), link.source.end(), 1);
    EXPECT_EQ(link.put(0, 65536 * 8), PW_NIC_OK);
    EXPECT_EQ(link.get(0, 8), PW_NIC_OK);  // after the put
    std::istringstream log(take_log());
    uint64_t bytes = 0, copies = 0, copied = 0;
    for (std::string kind; log >> kind >> bytes; ++copies) copied += bytes;
    EXPECT_EQ(copied, 2 * (65536 * 8 + 8));
    EXPECT_LE(copies, 2 + 64 + 2);
    EXPECT_EQ(link.target[65535], 65536u);
    dlclose(driver);
  }
  torus_plugin = before;
  unsetenv("PEERWAY_CUDA_LIBRARY");
}

TEST(TorusCounters, CountWhatWentOverEachLink) {
  const std::string path = ::testing::TempDir() + "counters-" + std::to_string(getpid());
  std::remove(path.c_str());
  {
    TorusNic a("node=1,counters=" + path), b("node=3");
    TorusLink link(a, b);
    EXPECT_EQ(link.put(0, 20000), PW_NIC_OK);
    EXPECT_EQ(link.get(0, 8), PW_NIC_OK);
  }
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const char* expected : {R"("puts":1,"put_bytes":20000,"gets":1,"get_bytes":8,"by_memory":2,)",
                               R"("link":{"from":1,"to":2,"dimension":0},"bytes":20000,"packets":4})",
                               R"("link":{"from":2,"to":3,"dimension":0},"bytes":20000,"packets":4})",
                               R"("link":{"from":3,"to":2,"dimension":0},"bytes":8,"packets":1})"})
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  std::remove(path.c_str());
}

}  // namespace
