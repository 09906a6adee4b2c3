"""A fake broker or controller with feature levels."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.codec.frames import Request
from tests.net.fake import HOST, Broker, api_versions, cluster_answer, of_release


class Node(Broker):
    """Node 1 of a cluster of its own. supported: feature -> (min, max); versions: those of UpdateFeatures.

    controller=True: it serves a controller's APIs, and DescribeCluster lists it as the active controller.
    """

    def __init__(
        self, supported: dict[str, tuple[int, int]], finalized: dict[str, int], *, epoch: int = 1,
        versions: tuple[int, int] = (0, 2), controller: bool = False,
    ) -> None:  # fmt: skip
        ranges = of_release("4.3") | {"UpdateFeatures": versions}
        if controller:
            del ranges["Metadata"]
        else:
            del ranges["Vote"]
        super().__init__(ranges, self._answer)
        self.supported, self.finalized, self.epoch = supported, finalized, epoch
        self.leader: Node = self
        self.refused: dict[str, tuple[int, str | None]] = {}
        self.moved = 0  # UpdateFeatures to answer with NOT_CONTROLLER

    def refuse(self, feature: str, code: int, message: str | None) -> None:
        """Answers each update of a feature with an error from now on."""
        self.refused[feature] = code, message

    def asked(self, name: str) -> list[Request]:
        """The requests of an API so far."""
        return [request for request in self.requests if request.name == name]

    def negotiate(self, request: Request) -> Any:
        if request.version > self.ranges["ApiVersions"][1]:
            return super().negotiate(request)
        supported = messages.ApiVersionsResponse.SupportedFeatureKey
        finalized = messages.ApiVersionsResponse.FinalizedFeatureKey
        low = 0 if request.version >= 4 else 1  # KAFKA-17011
        features: dict[str, Any] = {}
        if request.version >= 3:
            features = {
                "supported_features": [
                    supported(name=name, min_version=span[0], max_version=span[1])
                    for name, span in self.supported.items() if span[0] >= low
                ],
                "finalized_features": [
                    finalized(name=name, max_version_level=level, min_version_level=level)
                    for name, level in self.finalized.items()
                ],
                "finalized_features_epoch": self.epoch,
            }  # fmt: skip
        return api_versions(self.ranges, **features)

    def _answer(self, request: Request) -> Any:
        if request.name == "UpdateFeatures":
            return self._update(request)
        if request.name == "DescribeCluster":
            row = messages.DescribeClusterResponse.DescribeClusterBroker
            nodes = sorted({self.port, self.leader.port})
            return messages.DescribeClusterResponse(
                cluster_id="c", endpoint_type=request.message.endpoint_type,
                controller_id=nodes.index(self.leader.port),
                brokers=[row(broker_id=number, host=HOST, port=port) for number, port in enumerate(nodes)],
            )  # fmt: skip
        return cluster_answer(self)(request)

    def _update(self, request: Request) -> Any:
        response, row = messages.UpdateFeaturesResponse, messages.UpdateFeaturesResponse.UpdatableFeatureResult
        if self.moved:
            self.moved -= 1
            return response(error_code=41)
        rows = []
        for update in request.message.feature_updates:
            code, message = self.refused.get(update.feature, (0, None))
            if code and request.version >= 2:
                return response(error_code=code, error_message=message)
            rows.append(row(feature=update.feature, error_code=code, error_message=message))
        return response(results=[] if request.version >= 2 else rows)
