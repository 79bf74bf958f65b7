"""The providers whose models are asked through an API."""

from typing import Final

PROVIDERS: Final = frozenset(
    {
        "anthropic",
        "azureai",
        "bedrock",
        "cf",
        "cloudflare",
        "deepseek",
        "fireworks",
        "google",
        "grok",
        "groq",
        "hf-inference-providers",
        "litellm-proxy",
        "mistral",
        "mockllm",
        "moonshot",
        "ollama",
        "openai",
        "openai-api",
        "openrouter",
        "perplexity",
        "sagemaker",
        "sambanova",
        "sglang",
        "together",
        "vertex",
    }
)
"""First parts of model names that mean an API; local models run on our engines."""
