// The C functions of requests, and how a request finds out that it is complete.
#include <algorithm>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"
#include "context/request.h"
#include "trace/call.h"

namespace pw {

bool MarksRequest::complete(pw_status& ended) {
  if (!marks_.reached()) return false;
  ended = context_.failures().outcome(marks_);
  for (const RankFailures& before : failures_) {
    if (ended == PW_OK) ended = context_.failures().since(before.rank, before.count);
    if (ended == PW_OK) ended = context_.check_not_lost(before.rank);
  }
  return true;
}

}  // namespace pw

bool pw_request::complete() {
  std::lock_guard lock(mutex);
  if (over || !request->complete(ended)) return over;
  over = true;
  if (ended != PW_OK) why = pw::last_error_message();
  return true;
}

pw_status pw_request::ending() {
  std::lock_guard lock(mutex);
  return ended == PW_OK ? PW_OK : pw::fail(ended, why);
}

pw::Source* pw_request::source() {
  std::lock_guard lock(mutex);
  return over ? nullptr : request->source();
}

pw::Wakes pw_request::wakes() {
  std::lock_guard lock(mutex);
  return over ? pw::Wakes::always : request->wakes();
}

namespace {

using pw::given;

using Requests = std::span<pw_request* const>;

// Waits until `done()` returns true, which looks at the requests. All belong to one context, and at least one
// is open.
template <typename Done>
pw_status wait_for_requests(Requests requests, uint64_t timeout_ns, Done&& done) {
  std::optional<pw::trace::Operation> operation;
  if (pw::trace::recording()) operation.emplace("wait for requests", PW_TRACE_REQUESTS);
  pw::Context& context = *requests.front()->context;
  pw::Source* source = nullptr;  // the first request's source; all sources are polled, this one most often
  for (pw_request* request : requests)
    if (source == nullptr) source = request->source();
  const auto wakes = [&] {
    const bool always = std::ranges::all_of(
        requests, [](pw_request* request) { return request->wakes() == pw::Wakes::always; });
    return always ? pw::Wakes::always : pw::Wakes::perhaps;
  };
  const pw_status waited =
      context.progress().wait(pw::deadline_after(timeout_ns), "requests to complete", source, done, wakes);
  if (waited != PW_TIMEOUT) return waited;
  const auto incomplete =
      std::ranges::count_if(requests, [](pw_request* request) { return !request->complete(); });
  return pw::fail(PW_TIMEOUT,
                  pw::format("waited {:.3g} s for requests; {} of {} are not complete. "
                             "They go on: wait again, and see whether the other ranks are at work",
                             static_cast<double>(timeout_ns) * 1e-9, incomplete, requests.size()));
}

// Throws Error if the list cannot be waited for.
void check_list(Requests requests) {
  if (requests.empty())
    throw pw::Error(PW_INVALID_ARGUMENT, "a wait for an empty list of requests; give at least one");
  for (size_t r = 0; r < requests.size(); ++r) {
    if (requests[r] == nullptr)
      throw pw::Error(PW_INVALID_ARGUMENT, pw::format("request {} of {} is null", r, requests.size()));
    if (requests[r]->context != requests.front()->context)
      throw pw::Error(PW_INVALID_ARGUMENT,
                      pw::format("requests 0 and {} are of two contexts; wait for those of each "
                                 "context by themselves",
                                 r));
  }
}

// Calls `start` with the marks to fill. The request stands for the started operation and for a notification
// with it.
template <typename Start>
pw_status start_request(pw_context* context, int rank, const pw::Notification* notification,
                        pw_request** request, Start&& start) {
  auto handle = std::make_unique<pw_request>(context->context);
  auto marks = std::make_unique<pw::MarksRequest>(*context->context, rank);
  if (notification != nullptr) marks->watch_failures_of(notification->signal->rank());
  if (const pw_status status = start(marks->marks()); status != PW_OK) return status;
  if (notification != nullptr) context->context->add_marks(notification->signal->rank(), marks->marks());
  handle->request = std::move(marks);
  *request = handle.release();
  return PW_OK;
}

}  // namespace

extern "C" {

pw_status pw_start_put(pw_context* context, pw_remote* to, const pw_block* to_block, const pw_region* from,
                       const pw_block* from_block, const pw_notification* notification,
                       pw_request** request) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, to, to_block, from, from_block, request), [&] {
    const pw::CheckedNotification checked(notification);
    pw::Remote& target = pw::region_of(to);
    return start_request(context, target.rank(), checked.get(), request, [&](pw::Marks& marks) {
      return context->context->put_blocks(target, *pw::CheckedBlock(to_block), *from->region,
                                          *pw::CheckedBlock(from_block), checked.get(), &marks);
    });
  });
}

pw_status pw_start_get(pw_context* context, pw_region* to, const pw_block* to_block, const pw_remote* from,
                       const pw_block* from_block, pw_request** request) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, to, to_block, from, from_block, request), [&] {
    pw::Remote& source = pw::region_of(from);
    return start_request(context, source.rank(), nullptr, request, [&](pw::Marks& marks) {
      return context->context->get_blocks(source, *pw::CheckedBlock(from_block), *to->region,
                                          *pw::CheckedBlock(to_block), &marks);
    });
  });
}

pw_status pw_start_notify(pw_context* context, const pw_notification* notification, pw_request** request) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, notification, request), [&] {
    const pw::CheckedNotification checked(notification);
    return start_request(context, checked.value().signal->rank(), checked.get(), request,
                         [&](pw::Marks&) { return context->context->notify(checked.value()); });
  });
}

pw_status pw_start_flush(pw_context* context, int rank, pw_request** request) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, request), [&] {
    pw::Context& in = *context->context;
    if (rank < PW_ANY_RANK || rank >= in.team().size()) {
      pw::Marks none;
      return in.add_marks_of(rank, none);  // it reports the error
    }
    return start_request(context, rank, nullptr, request,
                         [&](pw::Marks& marks) { return in.add_marks_of(rank, marks); });
  });
}

pw_status pw_request_test(pw_request* request, int* complete) {
  return pw::catch_errors(__func__, given(request, complete), [&] {
    if (!request->complete()) request->context->progress().poll_sources();
    *complete = request->complete() ? 1 : 0;
    return *complete != 0 ? request->ending() : PW_OK;
  });
}

pw_status pw_request_wait(pw_request* request, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(request), [&] {
    const pw_status waited = request->complete() ? PW_OK
                                                 : wait_for_requests(Requests(&request, 1), timeout_ns,
                                                                     [&] { return request->complete(); });
    return waited == PW_OK ? request->ending() : waited;
  });
}

pw_status pw_request_wait_any(pw_request* const* requests, size_t count, uint64_t timeout_ns, size_t* index) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(index) && (count == 0 || given(requests)), [&] {
    const Requests all(requests, count);
    check_list(all);
    const auto find = [&] {
      const auto complete =
          std::ranges::find_if(all, [](pw_request* request) { return request->complete(); });
      *index = static_cast<size_t>(complete - all.begin());
      return complete != all.end();
    };
    const pw_status waited = find() ? PW_OK : wait_for_requests(all, timeout_ns, find);
    return waited == PW_OK ? requests[*index]->ending() : waited;
  });
}

pw_status pw_request_wait_all(pw_request* const* requests, size_t count, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, count == 0 || given(requests), [&] {
    if (count == 0) return PW_OK;
    const Requests all(requests, count);
    check_list(all);
    size_t reached = 0;  // number of leading requests that are complete
    const auto done = [&] {
      while (reached < count && all[reached]->complete()) ++reached;
      return reached == count;
    };
    if (!done())
      if (const pw_status waited = wait_for_requests(all, timeout_ns, done); waited != PW_OK) return waited;
    for (pw_request* request : all)
      if (const pw_status ended = request->ending(); ended != PW_OK) return ended;
    return PW_OK;
  });
}

pw_status pw_request_free(pw_request* request) {
  pw::release(request);
  return PW_OK;
}

}  // extern "C"
