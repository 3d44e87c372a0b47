#include "staging.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace hpl {

namespace {

class ThroughHost : public Comm {
 public:
  ThroughHost(Comm& comm, Device& device) : comm_(comm), device_(device) {}
  ~ThroughHost() override { drop(); }
  ThroughHost(const ThroughHost&) = delete;
  ThroughHost& operator=(const ThroughHost&) = delete;

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string name() const override { return comm_.name() + ", through host memory"; }
  bool takes_device_memory() const override { return true; }
  void barrier() override { comm_.barrier(); }
  void all_gather(const void* mine, size_t bytes, void* all) override { comm_.all_gather(mine, bytes, all); }

  void use(Pool device, Pool cpu) override {
    drop();
    of_device_ = device.memory;
    mirror_ = static_cast<char*>(device_.allocate_host(device.bytes));
    comm_.use({mirror_, device.bytes}, cpu);
  }

  void expect(int from, Channel channel, size_t offset, size_t bytes) override {
    if (!of_cpu(channel)) expected_[{from, channel}].push_back({offset, bytes});
    comm_.expect(from, channel, offset, bytes);
  }
  bool expected_by(int to, Channel channel) override { return comm_.expected_by(to, channel); }
  void send(int to, Channel channel, size_t offset, size_t to_offset, size_t bytes) override {
    if (!of_cpu(channel) && newly_mirrored(channel, offset, bytes))
      device_.copy(queue(channel), mirror_ + offset, of_device_ + offset, bytes);
    comm_.send(to, channel, offset, to_offset, bytes);
  }
  void settle(Channel channel) override {
    comm_.settle(channel);
    mirrored_[channel].clear();
  }
  bool arrived(int from, Channel channel) override { return comm_.arrived(from, channel); }
  void receive(int from, Channel channel) override {
    comm_.receive(from, channel);
    if (of_cpu(channel)) return;
    auto& expected = expected_[{from, channel}];
    const auto [offset, bytes] = expected.front();
    expected.pop_front();
    device_.copy(queue(channel), of_device_ + offset, mirror_ + offset, bytes);
    newly_mirrored(channel, offset, bytes);
  }

 private:
  /// Panels are made and used in `ahead`; rows have a queue of their own.
  static Queue queue(Channel channel) { return channel == Channel::panel ? kAhead : kRows; }
  /// Records that the mirror has these bytes; returns false if it had all of them.
  bool newly_mirrored(Channel channel, size_t offset, size_t bytes) {
    size_t& there = mirrored_[channel][offset];
    return std::exchange(there, std::max(there, bytes)) < bytes;
  }
  void drop() {
    if (mirror_ != nullptr) device_.free(std::exchange(mirror_, nullptr));
  }

  struct Place {
    size_t offset, bytes;
  };
  Comm& comm_;
  Device& device_;
  // Which parts of the mirror equal the device's memory: what is sent does not change before settle().
  std::map<Channel, std::map<size_t, size_t>> mirrored_;  // bytes by offset
  char *of_device_ = nullptr, *mirror_ = nullptr;
  std::map<std::pair<int, Channel>, std::deque<Place>> expected_;
};

}  // namespace

std::unique_ptr<Comm> through_host(Comm& comm, Device& device) {
  return std::make_unique<ThroughHost>(comm, device);
}

}  // namespace hpl
