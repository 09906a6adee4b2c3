"""The fleet measured beside librdkafka's mock cluster and franz-go's kfake."""
