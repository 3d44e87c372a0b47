// Measures how long the driver alone takes to share a GPU's memory with another GPU's process, and how fast
// that process then copies into it. Peerway cannot be faster. Two processes, which see both GPUs or each its
// own, and both kinds of memory. Prints JSON lines:
//
//   nvcc -arch=native -O2 -std=c++17 -o driver_mapping driver_mapping.cu -lcuda && ./driver_mapping
#include <cuda.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 12;

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "";
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s: %s\n", call, name);
  _exit(1);
}
#define CHECK(call) check(call, #call)

class Times {
 public:
  template <typename Call>
  void add(const char* step, Call&& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    steps_[step].push_back(took.count());
  }
  [[nodiscard]] double median(const char* step) {
    auto& values = steps_[step];
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }
  void print() {
    const char* separator = "";
    for (auto& [step, values] : steps_) {
      std::printf("%s\"%s\": %.1f", separator, step.c_str(), median(step.c_str()));
      separator = ", ";
    }
  }

 private:
  std::map<std::string, std::vector<double>> steps_;
};

// A process, its GPU, and the socket to the other process.
struct Side {
  int ordinal;
  int socket;
  CUstream stream;

  void meet() const {
    char byte = 0;
    if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1) _exit(1);
  }
  CUipcMemHandle swap(const CUipcMemHandle& mine) const {
    CUipcMemHandle theirs;
    if (write(socket, &mine, sizeof mine) < 0 || read(socket, &theirs, sizeof theirs) < 0) _exit(1);
    return theirs;
  }
  [[nodiscard]] int swap_descriptors(int mine) const {
    char byte = 0;
    iovec one_byte{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &one_byte;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &mine, sizeof mine);
    if (sendmsg(socket, &message, 0) < 0 || recvmsg(socket, &message, 0) < 0) _exit(1);
    int theirs = -1;
    std::memcpy(&theirs, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof theirs);
    return theirs;
  }
};

void copy(const Side& side, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CHECK(cuMemcpyAsync(to, from, bytes, side.stream));
  while (cuStreamQuery(side.stream) == CUDA_ERROR_NOT_READY) {
  }
}

void copies(const Side& side, Times& times, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  times.add("first 8 bytes", [&] { copy(side, to, from, 8); });
  for (int i = 0; i < 200; ++i) times.add("8 bytes", [&] { copy(side, to, from, 8); });
  times.add("all", [&] { copy(side, to, from, bytes); });
}

void round_by_descriptor(const Side& side, Times& times, size_t bytes) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, side.ordinal};
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAccessDesc access{wanted.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const auto map = [&](CUdeviceptr& address, CUmemGenericAllocationHandle handle) {
    CHECK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    CHECK(cuMemMap(address, bytes, 0, handle, 0));
    CHECK(cuMemSetAccess(address, bytes, &access, 1));
  };
  const auto unmap = [&](CUdeviceptr address, CUmemGenericAllocationHandle handle) {
    CHECK(cuMemUnmap(address, bytes));
    CHECK(cuMemAddressFree(address, bytes));
    CHECK(cuMemRelease(handle));
  };
  CUmemGenericAllocationHandle mine = 0, theirs = 0;
  CUdeviceptr near = 0, far = 0;
  int descriptor = -1;
  times.add("allocate", [&] {
    CHECK(cuMemCreate(&mine, bytes, &wanted, 0));
    map(near, mine);
  });
  times.add("export", [&] {
    CHECK(cuMemExportToShareableHandle(&descriptor, mine, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  });
  const int other = side.swap_descriptors(descriptor);
  times.add("import", [&] {
    CHECK(cuMemImportFromShareableHandle(&theirs, reinterpret_cast<void*>(static_cast<intptr_t>(other)),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    map(far, theirs);
  });
  copies(side, times, far, near, bytes);
  side.meet();
  times.add("close", [&] { unmap(far, theirs); });
  side.meet();
  times.add("free", [&] { unmap(near, mine); });
  close(descriptor);
  close(other);
}

void round_by_ipc(const Side& side, Times& times, size_t bytes) {
  CUdeviceptr near = 0, far = 0;
  CUipcMemHandle mine;
  times.add("allocate", [&] { CHECK(cuMemAlloc(&near, bytes)); });
  times.add("export", [&] { CHECK(cuIpcGetMemHandle(&mine, near)); });
  const CUipcMemHandle theirs = side.swap(mine);
  times.add("import", [&] { CHECK(cuIpcOpenMemHandle(&far, theirs, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)); });
  copies(side, times, far, near, bytes);
  side.meet();
  times.add("close", [&] { CHECK(cuIpcCloseMemHandle(far)); });
  side.meet();
  times.add("free", [&] { CHECK(cuMemFree(near)); });
}

void run(int rank, bool apart, int socket) {
  setenv("CUDA_VISIBLE_DEVICES", apart ? (rank == 0 ? "0" : "1") : "0,1", 1);
  Side side{apart ? 0 : rank, socket, nullptr};
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, side.ordinal));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&side.stream, CU_STREAM_NON_BLOCKING));
  for (const bool by_ipc : {false, true})
    for (const size_t bytes : {size_t{2} << 20, size_t{64} << 20, size_t{2} << 30}) {
      Times times;
      for (int i = 0; i < kRounds; ++i)
        by_ipc ? round_by_ipc(side, times, bytes) : round_by_descriptor(side, times, bytes);
      if (rank != 0) continue;
      std::printf("{\"test\": \"driver_mapping\", \"gpus\": \"%s\", \"memory\": \"%s\", \"bytes\": %zu, ",
                  apart ? "hidden from each other" : "visible to both", by_ipc ? "cuMemAlloc" : "cuMemCreate",
                  bytes);
      std::printf("\"GBps\": %.1f, \"p50_us\": {", static_cast<double>(bytes) / times.median("all") / 1e3);
      times.print();
      std::printf("}}\n");
      std::fflush(stdout);
    }
}

}  // namespace

int main() {
  for (const bool apart : {false, true}) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 1;
    for (int rank = 0; rank < 2; ++rank)
      if (fork() == 0) {
        run(rank, apart, sockets[rank]);
        _exit(0);
      }
    close(sockets[0]);
    close(sockets[1]);
    for (int status = 0; wait(&status) > 0;)
      if (status != 0) return 1;
  }
  return 0;
}
