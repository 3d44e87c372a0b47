// A stream of the library that frees itself.
#pragma once

#include "base/status.h"
#include "peerway/peerway.h"

namespace pw::bench {

/// Throws Error with the message of the thread's last failure.
inline void need(pw_status status) {
  if (status != PW_OK) throw Error(status, last_error_message());
}

class Stream {
 public:
  Stream(pw_context* context, pw_device device) : context_(context) {
    need(pw_stream_create(context, device, &stream_));
  }
  ~Stream() { pw_stream_free(context_, stream_); }
  Stream(const Stream&) = delete;

  [[nodiscard]] pw_stream get() const { return stream_; }
  void wait(uint64_t timeout_ns) const { need(pw_stream_wait(context_, stream_, timeout_ns)); }

 private:
  pw_context* context_;
  pw_stream stream_{};
};

}  // namespace pw::bench
