#include "plan/negotiation/methods.h"

#include "base/status.h"
#include "context/handle.h"

namespace pw {
namespace {

constexpr const char* kBySlots = "plan/slots";
constexpr const char* kByPackets = "plan/packets";
constexpr const char* kByLines = "plan/lines";
constexpr const char* kByStraight = "plan/straight";
constexpr const char* kByProxy = "plan/posted";

Offer offer(bool available, const char* why_not) {
  return available ? Offer::yes() : Offer::hindered(why_not);
}

}  // namespace

std::vector<NamedOffer> methods_of(uint8_t device_kind, LaneReach reach) {
  const bool host = device_kind == PW_HOST;
  std::vector<NamedOffer> methods;
  Offer slots =
      offer(reach.mailbox, "this rank does not map memory of the receiver; the proxy moves the bytes");
  if (!host) {
    Offer lines = slots;
    if (lines.available)
      lines = offer(reach.lines,
                    "the link to the receiver's GPU is not known to carry 128 bytes whole, as NVLink does");
    methods.push_back({kByLines, std::move(lines)});
  }
  methods.push_back({host ? kBySlots : kByPackets, std::move(slots)});
  Offer straight =
      offer(reach.mailbox && reach.region,
            "this rank does not map the receiver's region: pw_region_allocate did not make it, or it is "
            "on another host");
  methods.push_back({kByStraight, std::move(straight)});
  methods.push_back({kByProxy, Offer::yes()});
  return methods;
}

SendMethod method_named(std::string_view name) {
  if (name == kBySlots || name == kByPackets) return SendMethod::slots;
  if (name == kByLines) return SendMethod::lines;
  return name == kByStraight ? SendMethod::straight : SendMethod::posted;
}

const char* name_of_method(SendMethod method, uint8_t device_kind) {
  if (method == SendMethod::slots) return device_kind == PW_HOST ? kBySlots : kByPackets;
  if (method == SendMethod::lines) return kByLines;
  return method == SendMethod::straight ? kByStraight : kByProxy;
}

// No plan exists here, so there is no mailbox to ask for. The receiver would allocate its mailbox on the same
// kind of device, and such memory is in reach on this host.
std::vector<NamedOffer> methods_for(pw_context* context, const pw_remote* remote, const pw_region* region) {
  Context& of = *context->context;
  Device& device = region->region->device();
  const bool region_in_reach = of.reaches(device, *remote->remote);
  const bool mapped = remote->remote->same_host() && of.resolver().uses_mappings();
  const LaneReach reach{mapped, region_in_reach,
                        mapped && device.carries_lines(remote->remote->key.exported)};
  return methods_of(static_cast<uint8_t>(device.id().kind), reach);
}

std::string explain_send_for(pw_context* context, const pw_remote* remote, const pw_region* region) {
  return context->context->resolver().explain_send(*region->region, *remote->remote,
                                                   methods_for(context, remote, region));
}

}  // namespace pw
