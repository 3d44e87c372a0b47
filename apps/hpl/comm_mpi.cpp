// Messages by MPI: a receive is posted when a message is expected. The memory may be a GPU's if the MPI says
// that it is CUDA-aware; an MPI without that query is assumed not to be.
#define OMPI_SKIP_MPICXX 1  // disables their removed C++ bindings
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>

#include "comm.h"

namespace hpl {

namespace {

constexpr size_t kPiece = size_t{1} << 30;  // counts in MPI are ints

void must(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error(std::string("hpl: ") + call + " failed: " + text);
}

class MpiComm : public Comm {
 public:
  MpiComm() {
    int ready = 0;
    MPI_Initialized(&ready);
    if (!ready) must(MPI_Init(nullptr, nullptr), "MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiComm() override {
    if (!std::uncaught_exceptions()) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string all(text);
    return all.substr(0, all.find_first_of(",\n"));
  }
  bool takes_device_memory() const override {
    // The functions exist in Open MPI, MPICH and others, but not in mpi.h.
    for (const char* name : {"MPIX_Query_cuda_support", "MPIX_Query_rocm_support"}) {
      void* ask = dlsym(RTLD_DEFAULT, name);
      if (ask != nullptr && reinterpret_cast<int (*)()>(ask)() == 1) return true;
    }
    return false;
  }
  void barrier() override { must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    const int count = static_cast<int>(bytes);
    must(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");
  }
  void use(Pool device, Pool cpu) override { device_ = device.memory, cpu_ = cpu.memory; }

  void expect(int from, Channel channel, size_t offset, size_t bytes) override {
    std::vector<MPI_Request> posted;
    pieces(channel, offset, bytes, [&](char* part, int count) {
      MPI_Request& request = posted.emplace_back();
      must(MPI_Irecv(part, count, MPI_BYTE, from, tag(channel), MPI_COMM_WORLD, &request), "MPI_Irecv");
    });
    expected_[{from, channel}].push_back(std::move(posted));
  }
  bool expected_by(int, Channel) override { return true; }  // MPI has room, or makes the sender wait
  void send(int to, Channel channel, size_t offset, size_t, size_t bytes) override {
    pieces(channel, offset, bytes, [&](char* part, int count) {
      MPI_Request& request = sent_[tag(channel)].emplace_back();
      must(MPI_Isend(part, count, MPI_BYTE, to, tag(channel), MPI_COMM_WORLD, &request), "MPI_Isend");
    });
  }
  void settle(Channel channel) override {
    auto& sent = sent_[tag(channel)];
    must(MPI_Waitall(static_cast<int>(sent.size()), sent.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    sent.clear();
  }
  bool arrived(int from, Channel channel) override {
    auto& next = expected_[{from, channel}].front();
    int all = 0;
    must(MPI_Testall(static_cast<int>(next.size()), next.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall");
    return all != 0;
  }
  void receive(int from, Channel channel) override {
    auto& queue = expected_[{from, channel}];
    auto& next = queue.front();
    must(MPI_Waitall(static_cast<int>(next.size()), next.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    queue.pop_front();
  }

 private:
  static int tag(Channel channel) { return static_cast<int>(channel); }
  template <typename Do>
  void pieces(Channel channel, size_t offset, size_t bytes, Do&& each) {
    char* first = (of_cpu(channel) ? cpu_ : device_) + offset;
    size_t done = 0;
    do {
      const size_t part = std::min(bytes - done, kPiece);
      each(first + done, static_cast<int>(part));
      done += part;
    } while (done < bytes);
  }

  int rank_ = 0, size_ = 1;
  char *device_ = nullptr, *cpu_ = nullptr;
  std::map<std::pair<int, Channel>, std::deque<std::vector<MPI_Request>>> expected_;
  std::vector<MPI_Request> sent_[kHostChannels];
};

}  // namespace

}  // namespace hpl

extern "C" hpl::Comm* hpl_make_comm(double) { return new hpl::MpiComm; }
