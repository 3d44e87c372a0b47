#include "transport/ucx/peer.h"

namespace pw::ucx {

using namespace ucp_abi;

void UcxEngine::UcxPeer::close_broken() {
  if (endpoint == nullptr) return;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  params.cb.send = [](void* request, ucs_status_t, void* of) {
    static_cast<const Library*>(of)->ucp_request_free(request);
  };
  params.user_data = const_cast<Library*>(&engine.library_);
  engine.library_.ucp_ep_close_nbx(std::exchange(endpoint, nullptr), &params);
  engine.give_up_answers(*this);
  backlog.clear();
}

void UcxEngine::UcxPeer::close_orderly() {
  if (endpoint == nullptr) return;
  const ucp_request_param_t params{};
  void* request = engine.library_.ucp_ep_close_nbx(std::exchange(endpoint, nullptr), &params);
  if (!is_request(request)) return;
  // Limits the wait for a peer that does not answer: the worker is destroyed after this in any case.
  const uint64_t deadline = deadline_after(500'000'000);
  while (engine.library_.ucp_request_check_status(request) == UCS_INPROGRESS && now_ns() < deadline)
    engine.library_.ucp_worker_progress(engine.worker_);
  engine.library_.ucp_request_free(request);
}

}  // namespace pw::ucx
