#include "storage/rundb/catalog_reader.h"

#include "storage/rundb/detail/read_connection.h"

namespace sluice::rundb {

Result<std::vector<StringRow>> CatalogReader::strings() {
  return file_->read<StringRow>("strings");
}
Result<std::vector<TrackRow>> CatalogReader::tracks() { return file_->read<TrackRow>("tracks"); }
Result<std::vector<LinkRow>> CatalogReader::links() { return file_->read<LinkRow>("links"); }
Result<std::vector<DeviceRow>> CatalogReader::devices() {
  return file_->read<DeviceRow>("devices");
}
Result<std::vector<TrackLinkRow>> CatalogReader::track_links() {
  return file_->read<TrackLinkRow>("track_links");
}
Result<std::vector<StageRow>> CatalogReader::stages() { return file_->read<StageRow>("stages"); }

}  // namespace sluice::rundb
