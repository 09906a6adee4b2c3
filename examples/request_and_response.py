"""Encode a request, decode it as a broker does, answer it, decode the answer. No socket, no broker.

    python examples/request_and_response.py
"""

from __future__ import annotations

import json

import kwire
from kwire import messages


def main() -> None:
    """Run the example."""
    # There is one class for each message, for all of its versions. Nested structs are attributes of it, as in Java.
    topic = messages.MetadataRequest.MetadataRequestTopic(name="orders")
    request = messages.MetadataRequest(topics=[topic], allow_auto_topic_creation=False)

    # The version decides on the layout. A frame is the header and the body; pack_frame puts the 4-byte size in front.
    frame = kwire.encode_request(request, 12, correlation_id=7, client_id="example")
    print("request bytes: ", kwire.pack_frame(frame).hex(" "))

    # The other side: bytes come in pieces of any size, FrameReader gives whole frames.
    reader = kwire.FrameReader()
    for received in reader.feed(kwire.pack_frame(frame)):
        came = kwire.decode_request(received)
        print("broker decodes:", came.name, "version", came.version, "from", came.client_id)
        assert came.message == request

    partition = messages.MetadataResponse.MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])
    answer = messages.MetadataResponse(
        brokers=[messages.MetadataResponse.MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        topics=[messages.MetadataResponse.MetadataResponseTopic(name="orders", partitions=[partition])],
    )
    answer_frame = kwire.encode_response(answer, came.version, correlation_id=came.correlation_id)

    # A response does not say what it answers: the request does.
    response = kwire.decode_response(answer_frame, came)
    assert isinstance(response.message, messages.MetadataResponse)
    for described in response.message.topics:
        leaders = {row.partition_index: row.leader_id for row in described.partitions}
        print("client decodes:", described.name, "with leaders", leaders)
    print("as JSON:       ", json.dumps(kwire.to_json(response.message, response.version))[:100], "...")

    # What a version cannot carry is an error. All topics are null from version 1 on, and an empty list in version 0.
    try:
        kwire.encode(messages.MetadataRequest(topics=None), 0)
    except kwire.EncodeError as error:
        print("version 0:     ", error)


if __name__ == "__main__":
    main()
