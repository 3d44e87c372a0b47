// The host device with queues that are Peerway's streams of the host: worker threads.
#ifndef STENCIL2D_HOST_STREAMS_H
#define STENCIL2D_HOST_STREAMS_H

#include <peerway/peerway.hpp>

#include "host.h"
#include "variant.h"

namespace stencil {

class HostStreams : public HostDevice {
 public:
  explicit HostStreams(pw_context* context) : context_(context) {}
  ~HostStreams() override {
    for (const pw_stream& stream : streams_) pw_stream_free(context_, stream);
  }
  pw_stream queue(bool) override {
    pw_stream stream{};
    peerway::check(pw_stream_create(context_, {PW_HOST, 0}, &stream));
    streams_.push_back(stream);
    return stream;
  }
  void wait(pw_stream queue) override {
    if (queue.queue != nullptr) peerway::check(pw_stream_wait(context_, queue, PW_FOREVER));
  }
  void follow(pw_stream, pw_stream) override {
    throw Refused("stencil2d: queues of the host do not wait for each other.");
  }

 protected:
  void enqueue(pw_stream queue, std::function<void()> work) override {
    if (queue.queue == nullptr) return work();  // the calling thread
    auto owned = std::make_unique<std::function<void()>>(std::move(work));
    const auto call = [](void* user) {
      const std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(user));
      (*mine)();
    };
    peerway::check(pw_stream_call(context_, queue, call, owned.get()));
    static_cast<void>(owned.release());  // the call has it now
  }

 private:
  pw_context* context_;
  std::vector<pw_stream> streams_;
};

}  // namespace stencil

#endif
