// The host device that the driver library for tests uses; included by fake_libcuda.cpp.
#pragma once

// Gives the nodes of captures addresses as handles, as CUDA does.
struct FakeDevice : HostDevice {
    using HostDevice::HostDevice;
    struct Node {
        std::shared_ptr<gputensor::Graph> graph;
        int index;
    };
    std::map<std::pair<gputensor::Graph*, int>, Node> nodes;

    Node* name(const std::shared_ptr<gputensor::Graph>& graph, int index) {
        return &nodes.emplace(std::make_pair(graph.get(), index), Node{graph, index}).first->second;
    }
    void frontier(uint64_t stream, std::vector<const void*>& names) {
        std::lock_guard<std::mutex> guard(mutex);
        auto found = schedule.find(stream);
        for (int node : found->frontier) names.push_back(name(found->capture->graph, node));
    }
    bool names(uint64_t graph, std::vector<void*>& names) {
        std::lock_guard<std::mutex> guard(mutex);
        auto found = graphs.find(graph);
        if (found == graphs.end()) return false;
        for (size_t i = 0; i < found->second->nodes.size(); i++)
            names.push_back(name(found->second, int(i)));
        return true;
    }
    void* graph_of(uint64_t stream) {
        std::lock_guard<std::mutex> guard(mutex);
        return schedule.find(stream)->capture->graph.get();
    }
    // Adds a condition's node after other nodes to a graph in capture, and returns its body.
    int add_condition(void* handle, const std::set<int>& before, uint64_t condition, int kind,
                      Node** node, uint64_t* body) {
        std::lock_guard<std::mutex> guard(mutex);
        for (auto& entry : schedule.streams) {
            auto capture = entry.second->capture;
            if (!capture || capture->graph.get() != handle) continue;
            gputensor::Work work;
            int status = make_condition(*capture->graph, condition, kind, work);
            if (status) return status;
            *body = capture->graph->bodies.back();
            *node = name(capture->graph, capture->graph->add(work, before));
            return 0;
        }
        return INVALID_VALUE;
    }
    // Adds the nodes of a graph after other nodes of a graph in capture, and one behind all of them.
    int add_child(void* handle, const std::set<int>& before, uint64_t child, Node** node) {
        std::lock_guard<std::mutex> guard(mutex);
        auto added = graphs.find(child);
        if (added == graphs.end()) return INVALID_VALUE;
        for (auto& entry : schedule.streams) {
            auto capture = entry.second->capture;
            if (!capture || capture->graph.get() != handle) continue;
            auto& target = *capture->graph;
            const int base = int(target.nodes.size());
            for (size_t i = 0; i < added->second->nodes.size(); i++) {
                std::set<int> after;
                for (int other : added->second->before[i]) after.insert(base + other);
                target.add(added->second->nodes[i], after.empty() ? before : after);
            }
            std::set<int> ends = before;
            for (int end : added->second->ends()) ends.insert(base + end);
            gputensor::Work nothing{};
            nothing.kind = gputensor::Work::FUNCTION;
            nothing.function = [](void*) {};
            *node = name(capture->graph, target.add(nothing, ends));
            return 0;
        }
        return INVALID_VALUE;
    }
    void stand_at(uint64_t stream, const std::set<int>& nodes) {
        std::lock_guard<std::mutex> guard(mutex);
        schedule.find(stream)->frontier = nodes;
    }
    uint64_t id_of(const Node& node) { return name_of(*node.graph, node.index); }
    bool is_condition(const Node& node) {
        std::lock_guard<std::mutex> guard(mutex);
        return node.graph->nodes[size_t(node.index)].body != nullptr;
    }
    using HostDevice::NodeWords;
    NodeWords words(const Node& node) {
        std::lock_guard<std::mutex> guard(mutex);
        return words_of(node.graph->nodes[size_t(node.index)]);
    }
    void dependencies(const Node& node, std::vector<void*>& names) {
        std::lock_guard<std::mutex> guard(mutex);
        for (int other : node.graph->before[size_t(node.index)])
            names.push_back(name(node.graph, other));
    }
};
