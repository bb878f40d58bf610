#include "gui/widgets/mark_labels.h"

#include <algorithm>

namespace sluice::gui {
namespace {

std::string number_of_changes(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " change" : " changes");
}

// Marks that share a label at least when only numbers have room.
struct Cluster {
  std::size_t first = 0;
  std::size_t count = 1;
  float x = 0;  // where its number can begin
};

// Row 0 is free for each cluster's number: names stay there only where they end before the next
// cluster. The other rows are for names that are longer.
class LabelRows {
 public:
  LabelRows(const MarkSpace& space, const std::function<float(const std::string&)>& width_of)
      : space_(space), width_of_(width_of), free_from_(std::max<std::size_t>(1, space.row_max)) {
    std::ranges::fill(free_from_, space.left);
  }

  MarkLabel place(const Cluster& cluster, const std::string& names, float next_x) {
    const float width = width_of_(names);
    const bool is_last = next_x >= space_.right;
    for (std::size_t row = 0; row < free_from_.size(); ++row) {
      const float limit = row == 0 && !is_last ? next_x - space_.gap : space_.right;
      // At the right edge a name stands to the left of where it would begin.
      const bool may_shift = row > 0 || is_last;
      const float begin = may_shift ? std::min(cluster.x, limit - width) : cluster.x;
      if (begin < free_from_[row] || begin + width > limit) continue;
      return take(cluster, names, begin, width, row);
    }
    const std::string number = number_of_changes(cluster.count);
    return take(cluster, number, cluster.x, width_of_(number), 0);
  }

 private:
  MarkLabel take(const Cluster& cluster, const std::string& text, float begin, float width,
                 std::size_t row) {
    free_from_[row] = begin + width + space_.gap;
    return {cluster.first, cluster.count, begin, width, row, text};
  }

  const MarkSpace& space_;
  const std::function<float(const std::string&)>& width_of_;
  std::vector<float> free_from_;
};

std::vector<Cluster> clusters_of(std::span<const PlacedMark> marks, const MarkSpace& space,
                                 float number_width) {
  std::vector<Cluster> clusters;
  const float last_x = std::max(space.left, space.right - number_width);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const float x = std::clamp(marks[i].x, space.left, last_x);
    if (!clusters.empty() && x < clusters.back().x + number_width + space.gap) {
      clusters.back().count += 1;
    } else {
      clusters.push_back({i, 1, x});
    }
  }
  return clusters;
}

std::string names_of(std::span<const PlacedMark> marks) {
  std::string names;
  for (const PlacedMark& mark : marks) names += (names.empty() ? "" : ", ") + mark.text;
  return names;
}

}  // namespace

std::vector<MarkLabel> place_mark_labels(std::span<const PlacedMark> marks, const MarkSpace& space,
                                         const std::function<float(const std::string&)>& width_of) {
  const float number_width = width_of(number_of_changes(std::max<std::size_t>(10, marks.size())));
  if (number_width > space.right - space.left) return {};
  const std::vector<Cluster> clusters = clusters_of(marks, space, number_width);
  LabelRows rows(space, width_of);
  std::vector<MarkLabel> labels;
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    const float next_x = c + 1 < clusters.size() ? clusters[c + 1].x : space.right;
    labels.push_back(rows.place(
        clusters[c], names_of(marks.subspan(clusters[c].first, clusters[c].count)), next_x));
  }
  return labels;
}

}  // namespace sluice::gui
