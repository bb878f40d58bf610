#include "hls/host/xrt_devices.h"

#include "hls/host/detail/xrt_csd.h"

namespace sluice::hls_host {
namespace {

class XrtFactory final : public csd::DeviceFactory {
 public:
  XrtFactory(KernelFile file, std::vector<CardFacts> cards, TimeNs patience_ns)
      : file_(std::move(file)),
        list_(std::make_shared<CardList>(CardList{std::move(cards)})),
        patience_ns_(patience_ns),
        open_cards_(list_->cards.size()) {}

  std::string description() const override { return "CSDs by XRT: " + list_->cards.front().name; }

  Result<std::unique_ptr<csd::CsdDevice>> make(const csd::DeviceRequest& request) override {
    const auto index = static_cast<std::size_t>(index_of(request.device));
    if (index >= open_cards_.size()) {
      return make_error(ErrorCode::config,
                        "the run uses more devices than there are cards: XRT shows {}; set "
                        "devices={}",
                        open_cards_.size(), open_cards_.size());
    }
    // A card is programmed once; a change of knobs makes new devices of it.
    if (open_cards_[index] == nullptr) {
      ASSIGN_OR_RETURN(open_cards_[index],
                       open_card(static_cast<unsigned>(index), list_->cards[index], file_));
    }
    return std::unique_ptr<csd::CsdDevice>(
        std::make_unique<XrtCsd>(request, open_cards_[index], list_, patience_ns_));
  }

 private:
  KernelFile file_;
  std::shared_ptr<CardList> list_;
  TimeNs patience_ns_;
  std::vector<std::shared_ptr<Card>> open_cards_;  // by XRT's number; empty: not yet
};

}  // namespace

Result<std::unique_ptr<csd::DeviceFactory>> open_xrt_devices(const XrtOptions& options) {
  ASSIGN_OR_RETURN(KernelFile file,
                   read_kernel_file(options.xclbin, options.rule, options.is_split));
  ASSIGN_OR_RETURN(std::vector<CardFacts> cards, list_cards());
  if (cards.empty()) {
    return make_error(ErrorCode::unsupported,
                      "backend=xrt: XRT finds no card; `sluice doctor` says what is missing, and "
                      "backend=emulated needs none");
  }
  return std::unique_ptr<csd::DeviceFactory>(
      std::make_unique<XrtFactory>(std::move(file), std::move(cards), options.patience_ns));
}

}  // namespace sluice::hls_host
